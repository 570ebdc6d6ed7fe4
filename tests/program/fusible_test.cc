// row_plan: which bodies run in one sweep, and where the border between rows and columns falls.
#include "program/fusible.h"

#include <gtest/gtest.h>

#include "base/str.h"
#include "program/builder.h"

namespace weft::fusible_test {
namespace {

const Shape kFull = {{"batch", 2}, {"length", 3}, {"d", 4}};
const Shape kRows = {{"batch", 2}, {"length", 3}}, kCols = {{"d", 4}};

// A body under construction: maps are sums of their operands.
struct Sweep {
  Program program;

  ValueId value(const Shape& shape) {
    return program.values.add(
        {str("v", program.values.size()), DType::kF32, shape, Sharding{std::vector<Axes>(shape.rank()), {}}});
  }
  ValueId input(const Shape& shape) {
    const ValueId id = value(shape);
    program.inputs.push_back({str("i", id), id});
    return id;
  }
  ValueId map(const std::vector<ValueId>& inputs, const Shape& shape) {
    Map operation;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      operation.nodes.push_back({.op = "input", .input = static_cast<int>(i)});
    program.body.push_back({operation, inputs, {value(shape)}, {}});
    return program.body.back().outputs[0];
  }
  ValueId reduce(ValueId x, const Shape& shape) {
    program.body.push_back({ReduceDims{}, {x}, {value(shape)}, {}});
    return program.body.back().outputs[0];
  }
  std::optional<RowPlan> plan(const std::vector<ValueId>& outputs = {}) {
    for (ValueId id : outputs) program.outputs.push_back({str("o", id), id});
    return row_plan(program);
  }
};

std::string text(const std::vector<Dim>& dims) { return str(Shape(dims)); }

TEST(Fusible, LayerNormHasItsRowsBeforeTheReducedDim) {
  Sweep body;
  const ValueId x = body.input(kFull), scale = body.input(kCols), mask = body.input({{"length", 3}});
  const ValueId mean = body.reduce(x, kRows);
  const ValueId y = body.map({x, mean, scale, mask}, kFull);
  const auto plan = body.plan({y});
  ASSERT_TRUE(plan);
  EXPECT_EQ(text(plan->rows), "[batch=2 length=3]");
  EXPECT_EQ(text(plan->cols), "[d=4]");
  EXPECT_TRUE(plan->whole_rows);
  EXPECT_EQ(plan->extents, (std::vector{Extent::kFull, Extent::kColumn, Extent::kRow, Extent::kRow, Extent::kFull}));
  EXPECT_EQ(plan->late, std::vector<bool>(5, false));
}

TEST(Fusible, WhatJoinsRowsIsLate) {
  Sweep body;
  const ValueId x = body.input(kFull);
  const ValueId square = body.map({x}, kFull);
  const ValueId per_row = body.reduce(square, kRows), per_column = body.reduce(square, kCols);
  const ValueId of_rows = body.reduce(per_row, {}), of_all = body.reduce(x, {});
  const ValueId scaled = body.map({per_column, of_all}, kCols);
  const auto plan = body.plan({scaled, of_rows});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->late, (std::vector<bool>{false, false, false, true, true, true, true}));
}

TEST(Fusible, ALateValueIsNotUsedInRowsNorReduced) {
  Sweep in_rows;
  const ValueId x = in_rows.input(kFull);
  in_rows.map({x, in_rows.reduce(x, kCols)}, kFull);
  EXPECT_FALSE(in_rows.plan());
  Sweep reduced;
  reduced.reduce(reduced.reduce(reduced.input(kFull), kCols), {});
  EXPECT_FALSE(reduced.plan());
}

TEST(Fusible, TwoBordersAreRefused) {
  Sweep body;
  const ValueId x = body.input(kFull);
  body.reduce(x, kRows);
  body.reduce(x, {{"batch", 2}});
  EXPECT_FALSE(body.plan());
}

TEST(Fusible, AMiddleDimIsNotReduced) {
  Sweep body;
  body.reduce(body.input(kFull), {{"batch", 2}, {"d", 4}});
  EXPECT_FALSE(body.plan());
}

TEST(Fusible, AResultLiesWhollyOnOneSide) {
  Sweep body;
  const ValueId part = body.map({body.input({{"length", 3}, {"d", 4}})}, {{"length", 3}, {"d", 4}});
  const ValueId full = body.map({part}, kFull);
  EXPECT_TRUE(body.plan());  // alone it sets the border
  body.reduce(full, kRows);
  EXPECT_FALSE(body.plan());
}

TEST(Fusible, ADimThatTheFullShapeLacksIsRefused) {
  Sweep body;
  body.map({body.input(kFull)}, kFull);
  body.map({body.input({{"other", 2}})}, {{"other", 2}});
  EXPECT_FALSE(body.plan());
}

TEST(Fusible, OtherInstructionsAreRefused) {
  Sweep body;
  const ValueId y = body.map({body.input(kFull)}, kFull);
  EXPECT_TRUE(body.plan());
  body.program.body.push_back({Copy{}, {y}, {body.value(kFull)}, {}});
  EXPECT_FALSE(body.plan());
}

TEST(Fusible, MapsAloneAndScalars) {
  Sweep body;
  const ValueId rate = body.map({body.input({})}, {});
  body.map({rate, body.input(kFull)}, kFull);
  const auto plan = body.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(text(plan->cols), "[d=4]");
  EXPECT_FALSE(plan->whole_rows);
  EXPECT_EQ(plan->extents[ValueId(1)], Extent::kScalar);
  Sweep scalars;
  scalars.map({scalars.input({})}, {});
  const auto nothing = scalars.plan();
  ASSERT_TRUE(nothing);
  EXPECT_TRUE(nothing->rows.empty() && nothing->cols.empty());
}

TEST(Fusible, TheOrderIsThatOfTheReducedValue) {
  Sweep body;
  const ValueId x = body.input({{"d", 4}, {"batch", 2}, {"length", 3}});
  const ValueId y = body.map({x}, kFull);
  body.reduce(y, kRows);
  const auto plan = body.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(text(plan->cols), "[d=4]");
}

// A part that lies along the end of the first full value, but along neither end of the output.
TEST(Fusible, TheOrderIsThatOfAnOutputOnlyIfItDoes) {
  const Dim b{"b", 2}, f{"f", 3}, d{"d", 4};
  Sweep body;
  const ValueId part = body.map({body.input({f, d})}, {f, d});
  const ValueId full = body.map({part, body.input({b})}, {b, f, d});
  const ValueId out = body.map({full}, {d, b, f});
  EXPECT_TRUE(body.plan());
  const auto plan = body.plan({out});
  ASSERT_TRUE(plan);
  EXPECT_EQ(text(plan->rows), "[b=2]");
  EXPECT_EQ(text(plan->cols), "[f=3 d=4]");
}

}  // namespace
}  // namespace weft::fusible_test

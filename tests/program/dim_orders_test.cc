// Passes join_siblings and choose_dim_orders. The mesh is data:2 model:4 one:1.
#include <gmock/gmock.h>

#include "program/matrix_form.h"
#include "program/passes/passes.h"
#include "program/pipeline.h"
#include "program/program_text.h"

namespace weft::dim_orders_test {
namespace {

using test::is_program;
using test::program_of;

Program ordered(const std::string& lines) { return choose_dim_orders(program_of(lines), {}); }
Program joined(const std::string& lines) { return join_siblings(program_of(lines), {}); }

// What a layer of heads reads.
const std::string kHeads = R"(
input x %0 f32 [b=2 l=4 d=3] {}
variable w %1 f32 [d=3 h=2 k=5] fixed
variable o %2 f32 [h=2 k=5 d=3] fixed
)";

TEST(ChooseDimOrders, MakesOneProductOfManyAndTheSweepFollows) {
  EXPECT_TRUE(is_program(ordered(kHeads + R"(
%3 f32 [b=2 h=2 l=4 k=5] = contract %0, %1
%4 f32 [b=2 h=2 l=4 k=5] = map %3 expr=relu($0)
%5 f32 [b=2 l=4 d=3] = contract %4, %2
output y %5)"),
                         kHeads + R"(
%3 f32 [b=2 l=4 h=2 k=5] = contract %0, %1
%4 f32 [b=2 l=4 h=2 k=5] = map %3 expr=relu($0)
%5 f32 [b=2 l=4 d=3] = contract %4, %2
output y %5)"));
}

TEST(ChooseDimOrders, ListensToTheReader) {
  const std::string inputs = R"(
input p %0 f32 [b=2 h=2 l=4 m=4] {}
input v %1 f32 [b=2 m=4 h=2 k=5] {}
variable o %2 f32 [h=2 k=5 d=3] fixed
)";
  EXPECT_TRUE(is_program(ordered(inputs + R"(
%3 f32 [b=2 h=2 l=4 k=5] = contract %0, %1
%4 f32 [b=2 l=4 d=3] = contract %3, %2
output y %4)"),
                         inputs + R"(
%3 f32 [b=2 l=4 h=2 k=5] = contract %0, %1
%4 f32 [b=2 l=4 d=3] = contract %3, %2
output y %4)"));
}

TEST(ChooseDimOrders, TakesViewsAndAttentionAlong) {
  const std::string rules =
      "length=l memory=m key=k value=k scale=1 causal=false biased=false segments=false bounded=false sources=\"\"";
  EXPECT_TRUE(is_program(ordered(kHeads + R"(
%3 f32 [b=2 h=2 l=4 k=5] = contract %0, %1
%4 f32 [b=2 h=2 m=4 k=5] = view %3 offset=0 strides=[40 20 5 1]
%5 f32 [b=2 h=2 l=4 k=5], %6 f32 [b=2 h=2 l=4] = attend %3, %4, %4 )" +
                                 rules + R"(
%7 f32 [b=2 l=4 d=3] = contract %5, %2
output y %7)"),
                         kHeads + R"(
%3 f32 [b=2 l=4 h=2 k=5] = contract %0, %1
%4 f32 [b=2 h=2 m=4 k=5] = view %3 offset=0 strides=[40 5 10 1]
%5 f32 [b=2 l=4 h=2 k=5], %6 f32 [b=2 l=4 h=2] = attend %3, %4, %4 )" +
                             rules + R"(
%7 f32 [b=2 l=4 d=3] = contract %5, %2
output y %7)"));
}

TEST(ChooseDimOrders, MovesAxesWithTheirDims) {
  const std::string inputs = R"(
input x %0 f32 [b=2 l=4 d=3] {b:data}
variable w %1 f32 [d=3 h=2 k=5] {h:model} fixed
)";
  EXPECT_TRUE(is_program(ordered(inputs + R"(
%2 f32 [b=2 h=2 l=4 k=5] {b:data h:model} = contract %0, %1
%3 f32 [b=2 h=2] {b:data h:model} = reduce %2 how=sum
output y %3)"),
                         inputs + R"(
%2 f32 [b=2 l=4 h=2 k=5] {b:data h:model} = contract %0, %1
%3 f32 [b=2 h=2] {b:data h:model} = reduce %2 how=sum
output y %3)"));
}

TEST(ChooseDimOrders, LeavesWhatOthersRead) {
  const std::string inputs = R"(
input x %0 f32 [b=2 l=4 d=3] {}
variable w %1 f32 [d=3 h=2 k=5] fixed
%2 f32 [b=2 h=2 l=4 k=5] = contract %0, %1
)";
  const std::string fetched = inputs + "output y %2";
  const std::string reshaped = inputs + R"(
%3 f32 [b=2 h=2 lk=20] = view %2 offset=0 strides=[40 20 1]
%4 f32 [b=2] = reduce %3 how=sum
output y %4)";
  const std::string scanned = inputs + R"(
%3 f32 [b=2 h=2 l=4 k=5] = scan %2 dim=l how=sum exclusive=false reverse=false
output y %3)";
  const std::string plain = R"(
input x %0 f32 [b=2 l=4 d=3] {}
variable w %1 f32 [d=3 h=2 k=5] fixed
%2 f32 [b=2 l=4 h=2 k=5] = contract %0, %1
%3 f32 [b=2 h=2] = reduce %2 how=sum
output y %3)";
  for (const std::string& text : {fetched, reshaped, scanned, plain}) EXPECT_TRUE(is_program(ordered(text), text));
}

const std::string kStacked = R"(
input x %0 f32 [b=2 l=4 d=3] {}
variable w %1 f32 [d=3 s=2 h=2 k=5] fixed
)";
const std::string kSlices = R"(
%2 f32 [d=3 h=2 k=5] = view %1 offset=0 strides=[20 5 1]
%3 f32 [d=3 h=2 k=5] = view %1 offset=10 strides=[20 5 1]
)";

TEST(JoinSiblings, MakesOneProduct) {
  EXPECT_TRUE(is_program(joined(kStacked + kSlices + R"(
%4 f32 [b=2 l=4 h=2 k=5] = contract %0, %2
%5 f32 [b=2 l=4 h=2 k=5] = contract %0, %3
%6 f32 [b=2 m=4 h=2 k=5] = view %5 offset=0 strides=[40 10 5 1]
%7 f32 [b=2 h=2 l=4 m=4] = contract %4, %6
output y %7)"),
                         kStacked + kSlices + R"(
%4 f32 [d=3 siblings=2 h=2 k=5] = view %1 offset=0 strides=[20 10 5 1]
%5 f32 [b=2 l=4 siblings=2 h=2 k=5] = contract %0, %4
%6 f32 [b=2 l=4 h=2 k=5] = view %5 offset=0 strides=[80 20 5 1]
%7 f32 [b=2 l=4 h=2 k=5] = view %5 offset=10 strides=[80 20 5 1]
%8 f32 [b=2 m=4 h=2 k=5] = view %7 offset=0 strides=[80 20 5 1]
%9 f32 [b=2 h=2 l=4 m=4] = contract %6, %8
output y %9)"));
}

TEST(JoinSiblings, LeavesOthersAlone) {
  const std::string end = R"(
%6 f32 [b=2 l=4 h=2 k=5] = map %4, %5 expr=add($0, $1)
output y %6)";
  const std::string fetched = kStacked + kSlices + R"(
%4 f32 [b=2 l=4 h=2 k=5] = contract %0, %2
%5 f32 [b=2 l=4 h=2 k=5] = contract %0, %3
output u %4
output v %5)";
  const std::string of_other_inputs = kStacked + kSlices + R"(
%7 f32 [b=2 l=4 d=3] = map %0 expr=relu($0)
%4 f32 [b=2 l=4 h=2 k=5] = contract %0, %2
%5 f32 [b=2 l=4 h=2 k=5] = contract %7, %3)" +
                                      end;
  const std::string of_other_widths = kStacked + R"(
%2 f32 [d=3 h=2 k=5] = view %1 offset=0 strides=[20 5 1]
%3 f32 [d=3 h=2 k=5] = view %1 offset=5 strides=[20 10 1]
%4 f32 [b=2 l=4 h=2 k=5] = contract %0, %2
%5 f32 [b=2 l=4 h=2 k=5] = contract %0, %3)" +
                                      end;
  const std::string outermost = R"(
input x %0 f32 [b=2 l=4 d=3] {}
variable w %1 f32 [s=2 d=3 h=2 k=5] fixed
%2 f32 [d=3 h=2 k=5] = view %1 offset=0 strides=[10 5 1]
%3 f32 [d=3 h=2 k=5] = view %1 offset=30 strides=[10 5 1]
%4 f32 [b=2 l=4 h=2 k=5] = contract %0, %2
%5 f32 [b=2 l=4 h=2 k=5] = contract %0, %3)" +
                                end;
  for (const std::string& text : {fetched, of_other_inputs, of_other_widths, outermost})
    EXPECT_TRUE(is_program(joined(text), text));
}

}  // namespace
}  // namespace weft::dim_orders_test

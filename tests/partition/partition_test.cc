// What the partitioner and the passes make of known cases, by counting: collectives, their elements and their phases.
#include "partition/partition.h"

#include <gtest/gtest.h>

#include <map>

#include "support/compile.h"
#include "base/str.h"
#include "program/cost.h"
#include "weft/explain.h"
#include "weft/weft.h"

namespace weft::partition_test {
namespace {

// "forward all_reduce p" -> (how many instructions or members of joined ones, elements that enter).
struct Count {
  int instructions = 0;
  std::int64_t elements = 0;
  bool operator==(const Count&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Count& c) { return out << c.instructions << "x" << c.elements; }
using Counts = std::map<std::string, Count>;

Counts counted(const Program& program) {
  Counts counts;
  for (const Instr& instr : program.body) {
    if (!is_collective(instr)) continue;
    Count& count =
        counts[str(name_of(instr.origin.phase), " ", name_of(instr), " ", text_of(axes_of(instr), program.mesh))];
    for (ValueId id : instr.inputs) {
      ++count.instructions;
      count.elements += program.values[id].shape.elements();
    }
  }
  return counts;
}

class PartitionCounts : public ::testing::Test {
 protected:
  Counts counts(const std::string& mesh, const std::string& layout, const CompileOptions& options) const {
    return counted(compile_program(g, Mesh::parse(mesh), Layout::parse(layout), options).program);
  }
  // Of one processor, in all phases.
  double contract_flops(const std::string& mesh, const std::string& layout, const CompileOptions& options) const {
    double sum = 0;
    const Program program = compile_program(g, Mesh::parse(mesh), Layout::parse(layout), options).program;
    for (const double flops : summarize(program).contract_flops) sum += flops;
    return sum;
  }

  Graph g;
};

// y = relu(x w) v, and its derivatives: the paper's example, with batch=8, io=4, hidden=16.
class TwoLayers : public PartitionCounts {
 protected:
  const Dim batch{"batch", 8}, io{"io", 4}, hidden{"hidden", 16};
  Tensor x = g.input("x", {batch, io}), dy = g.input("dy", {batch, io});
  Tensor w = g.variable("w", {io, hidden}), v = g.variable("v", {hidden, io});
  Tensor y = einsum({relu(einsum({x, w}, {batch, hidden})), v}, {batch, io});
  Tensors d = gradients({y}, {w, v, x}, {dy});
  const CompileOptions forward{.fetch = {y}}, weights{.fetch = {y, d[0], d[1]}}, all{.fetch = {y, d[0], d[1], d[2]}};
};

TEST_F(TwoLayers, OneProcessorIsSilent) { EXPECT_EQ(counts("p:1", "batch:p", all), Counts{}); }

TEST_F(TwoLayers, DataParallelReducesEachWeightGradient) {
  EXPECT_EQ(counts("p:2", "batch:p", forward), Counts{});
  EXPECT_EQ(counts("p:2", "batch:p", all), (Counts{{"backward all_reduce p", {2, 64 + 64}}}));
  EXPECT_EQ(counts("p:4", "batch:p", all), (Counts{{"backward all_reduce p", {2, 64 + 64}}})) << "grew with the mesh";
}

TEST_F(TwoLayers, ModelParallelReducesTheResultAndDx) {
  EXPECT_EQ(counts("p:2", "hidden:p", forward), (Counts{{"forward all_reduce p", {1, 32}}}));
  EXPECT_EQ(counts("p:2", "hidden:p", weights), (Counts{{"forward all_reduce p", {1, 32}}}));
  EXPECT_EQ(counts("p:2", "hidden:p", all),
            (Counts{{"forward all_reduce p", {1, 32}}, {"backward all_reduce p", {1, 32}}}));
}

TEST_F(TwoLayers, BothAtOnceReduceOverTheirOwnAxesOnly) {
  EXPECT_EQ(counts("p:2 q:2", "batch:p hidden:q", all), (Counts{{"forward all_reduce q", {1, 16}},
                                                                {"backward all_reduce q", {1, 16}},
                                                                {"backward all_reduce p", {2, 32 + 32}}}));
}

TEST_F(TwoLayers, SplitInputsReduceTheHiddenLayer) {
  // x w sums over io, so the hidden layer is pending before the relu; backward, d hidden sums over io too.
  EXPECT_EQ(counts("p:2", "io:p", all),
            (Counts{{"forward all_reduce p", {1, 128}}, {"backward all_reduce p", {1, 128}}}));
}

// The products of all processors are those of one, shared out; where nothing is split everyone does all of them.
TEST_F(TwoLayers, WorkIsNotRepeated) {
  const double one = contract_flops("", "", all);
  EXPECT_EQ(one, 2 * 6 * 8 * 4 * 16);  // forward two, backward four
  for (const auto& [mesh, layout] :
       {std::pair("p:2", "batch:p"), std::pair("p:4", "batch:p"), std::pair("p:2", "hidden:p"),
        std::pair("p:2", "io:p"), std::pair("p:2 q:2", "batch:p hidden:q"), std::pair("p:2 q:2", "batch:p+q"),
        std::pair("p:2 q:2", "hidden:p io:q")})
    EXPECT_EQ(contract_flops(mesh, layout, all) * Mesh::parse(mesh).size(), one) << mesh << ", " << layout;
  EXPECT_EQ(contract_flops("p:4", "", all), one);
}

// Joining comes last: the two weight gradients travel in one instruction.
TEST_F(TwoLayers, WeightGradientsAreJoined) {
  const Program program = compile_program(g, Mesh::parse("p:2"), Layout::parse("batch:p"), all).program;
  int instructions = 0;
  for (const Instr& instr : program.body) instructions += is_collective(instr);
  EXPECT_EQ(instructions, 1);
}

TEST_F(TwoLayers, CausesAreTheForwardLines) {
  const Explanation e = explain(g, Mesh::parse("p:2"), Layout::parse("batch:p"), all, Machine::uniform(1e9, 1e9));
  ASSERT_EQ(e.collectives.size(), 1u);
  for (const std::string& cause : e.collectives[0].cause) EXPECT_EQ(cause, to_string(y.site()) + " einsum");
}

using PartitionOps = PartitionCounts;

TEST_F(PartitionOps, GatherOnASplitVocabSumsWhatEachFound) {
  const Dim vocab{"vocab", 12}, d{"d", 4}, n{"n", 6};
  const Tensor table = g.variable("table", {vocab, d}), ids = g.input("ids", {n}, DType::kI32);
  const Tensor rows = gather(table, ids, vocab), dtable = gradients({reduce_sum(rows * rows)}, {table})[0];
  EXPECT_EQ(counts("p:2", "vocab:p", {.fetch = {rows}}), (Counts{{"forward all_reduce p", {1, 24}}}));
  // Its derivative is scattered at home.
  EXPECT_EQ(counts("p:2", "vocab:p", {.fetch = {dtable}}), (Counts{{"forward all_reduce p", {1, 24}}}));
  EXPECT_EQ(counts("p:2", "d:p", {.fetch = {rows}}), Counts{});
}

TEST_F(PartitionOps, PiecesOfASplitDimGoByPermutes) {
  const Dim a{"a", 8}, b{"b", 3};
  const Tensor x = g.input("x", {a, b}), y = g.input("y", {a, b});
  for (const Tensor& moved :
       {concat({x, y}, "a"), shift(x, a, 1), shift(x, a, -3, true), slice(x, a, 2, 4), pad(x, a, 2, 2)})
    for (const char* mesh : {"p:2", "p:4"})
      for (const auto& [what, count] : counts(mesh, "a:p", {.fetch = {moved}}))
        EXPECT_EQ(what, "forward permute p") << moved.name() << " on " << mesh;
  EXPECT_EQ(counts("p:2", "a:p", {.fetch = {shift(x, a, 1)}}), (Counts{{"forward permute p", {1, 3}}}))
      << "more than one row travels";
}

TEST_F(PartitionOps, PiecesOfAnUnsplitDimStayAtHome) {
  const Dim a{"a", 8}, b{"b", 4};
  const Tensor x = g.input("x", {a, b});
  EXPECT_EQ(counts("p:2", "b:p", {.fetch = {concat({x, x}, "a"), shift(x, a, 1), slice(x, a, 2, 3), cumsum(x, a)}}),
            Counts{});
}

TEST_F(PartitionOps, CumsumSendsOneTotalPerProcessor) {
  const Dim a{"a", 8}, b{"b", 3};
  const Tensor x = g.input("x", {a, b});
  EXPECT_EQ(counts("p:4", "a:p", {.fetch = {cumsum(x, a)}}), (Counts{{"forward all_gather p", {1, 3}}}));
}

TEST_F(PartitionOps, TopKSendsKPerProcessor) {
  const Dim a{"a", 16}, b{"b", 3}, k{"k", 2};
  const TopKResult best = top_k(g.input("x", {a, b}), a, k);
  EXPECT_EQ(counts("p:4", "a:p", {.fetch = {best.values, best.indices}}), (Counts{{"forward all_gather p", {2, 12}}}));
}

TEST_F(PartitionOps, SortSharesTheLinesOut) {
  const Dim a{"a", 16}, b{"b", 8};
  const SortResult sorted = sort(g.input("x", {a, b}), a);
  EXPECT_EQ(counts("p:4", "a:p", {.fetch = {sorted.values, sorted.indices}}),
            (Counts{{"forward all_to_all p", {3, 96}}}));  // x there, values and indices back
}

TEST_F(PartitionOps, SortGathersWhereNoOtherDimDivides) {
  const Dim a{"a", 16}, b{"b", 3};
  EXPECT_EQ(counts("p:4", "a:p", {.fetch = {sort(g.input("x", {a, b}), a).values}}),
            (Counts{{"forward all_gather p", {1, 12}}}));
}

// A sum that is pending and then wanted in pieces is scattered, not made whole on everyone.
TEST_F(PartitionOps, WithLayoutAfterAContractionScatters) {
  const Dim a{"a", 8}, b{"b", 4}, c{"c", 6};
  const Tensor x = g.input("x", {a, b}), w = g.variable("w", {b, c});
  const Tensor y = with_layout(einsum({x, w}, {a, c}), "a:p");
  EXPECT_EQ(counts("p:2", "b:p", {.fetch = {y}}), (Counts{{"forward reduce_scatter p", {1, 48}}}));
}

TEST_F(PartitionOps, SumsOfPendingSumsAreReducedOnce) {
  const Dim a{"a", 8}, b{"b", 4};
  const Tensor x = g.input("x", {a, b}), y = g.input("y", {a, b});
  const Tensor sum = reduce_sum(x, {a}) * 2.0 + reduce_sum(y, {a});
  EXPECT_EQ(counts("p:2", "a:p", {.fetch = {sum}}), (Counts{{"forward all_reduce p", {1, 4}}}));
  // What is not linear forces the reduction.
  EXPECT_EQ(counts("p:2", "a:p", {.fetch = {exp(reduce_sum(x, {a}))}}), (Counts{{"forward all_reduce p", {1, 4}}}));
  EXPECT_EQ(counts("p:2", "a:p", {.fetch = {mean(x)}}), (Counts{{"forward all_reduce p", {1, 1}}}));
}

TEST_F(PartitionOps, SoftmaxOverASplitDimSendsTwoNumbersPerRow) {
  const Dim n{"n", 6}, vocab{"vocab", 8};
  const Tensor x = g.input("x", {n, vocab});
  EXPECT_EQ(counts("p:2", "vocab:p", {.fetch = {softmax(x, vocab)}}), (Counts{{"forward all_reduce p", {2, 12}}}));
  EXPECT_EQ(counts("p:2", "n:p", {.fetch = {softmax(x, vocab)}}), Counts{});
}

// The split dim stays the major one of its group, so nothing moves.
TEST_F(PartitionOps, ReshapesThatKeepTheSplitAreSilent) {
  const Dim batch{"batch", 4}, length{"length", 6}, d{"d", 8};
  const Tensor x = g.input("x", {batch, length, d});
  EXPECT_EQ(counts("p:2", "batch:p", {.fetch = {split_dim(x, d, {{"heads", 2}, {"d_kv", 4}})}}), Counts{});
  EXPECT_EQ(counts("p:2", "heads:p d:p", {.fetch = {split_dim(x, d, {{"heads", 2}, {"d_kv", 4}})}}), Counts{});
  EXPECT_EQ(counts("p:2", "batch:p tokens:p", {.fetch = {merge_dims(x, {batch, length}, "tokens")}}), Counts{});
  EXPECT_NE(counts("p:2", "length:p tokens:p", {.fetch = {merge_dims(x, {batch, length}, "tokens")}}), Counts{});
}

// Compile time does not grow with the mesh: one program for all processors.
TEST_F(TwoLayers, ProgramsAreOfOneLengthOnEveryMesh) {
  const auto length = [&](const std::string& mesh) {
    return compile_program(g, Mesh::parse(mesh), Layout::parse("batch:p"), all).program.body.size();
  };
  EXPECT_EQ(length("p:2"), length("p:4"));
  EXPECT_EQ(length("p:2"), length("p:8"));
}

}  // namespace
}  // namespace weft::partition_test

// The loss from hidden values: whole or in chunks, the same numbers under every layout; chunks take less memory.
#include <gtest/gtest.h>

#include "support/compile.h"
#include "program/memory_plan.h"
#include "weft/weft.h"

namespace weft::loss_test {
namespace {

const Dim kBatch{"batch", 8}, kLength{"length", 16}, kModel{"model", 4}, kVocab{"vocab", 96};

struct Loss {
  Graph g;
  Tensor hidden, targets, loss;
  Tensors derivatives;  // by hidden and by the kernel

  explicit Loss(std::int64_t chunks) {
    hidden = g.input("hidden", {kBatch, kLength, kModel});
    targets = g.input("targets", {kBatch, kLength}, DType::kI32);
    loss = nn::projected_cross_entropy(hidden, targets, kBatch, kModel, kVocab, {.chunks = chunks, .z_loss = 1e-3});
    derivatives = gradients({loss}, {hidden, g.variables()[0]});
  }
  CompileOptions options() const {
    return {.fetch = {loss, derivatives[0], derivatives[1]}, .compute_as = DType::kF64};
  }

  std::vector<Array> run(const std::string& mesh, const std::string& layout) {
    Array h(hidden.shape(), DType::kF64), t(targets.shape(), DType::kI32);
    for (std::int64_t i = 0; i < h.elements(); ++i) h.set(i, static_cast<double>(i * 37 % 101 - 50) / 25);
    for (std::int64_t i = 0; i < t.elements(); ++i) t.set(i, static_cast<double>(i * 53 % 96));
    Session session(Mesh::parse(mesh));
    const Values values = session.compile(g, Layout::parse(layout), options()).run({{hidden, h}, {targets, t}});
    return {values[loss], values[derivatives[0]], values[derivatives[1]]};
  }
};

TEST(ProjectedCrossEntropy, ChunksChangeNoNumberUnderAnyLayout) {
  const std::vector<Array> want = Loss(1).run("", "");
  EXPECT_GT(want[0].item(), 1);
  for (std::int64_t chunks : {1, 2, 4})
    for (const auto& [mesh, layout] : {std::pair("", ""), std::pair("p:2", "batch:p"), std::pair("p:2", "vocab:p"),
                                       std::pair("p:2 q:2", "batch:p vocab:q"), std::pair("p:2", "length:p")}) {
      const std::vector<Array> got = Loss(chunks).run(mesh, layout);
      for (std::size_t k = 0; k < want.size(); ++k)
        for (std::int64_t i = 0; i < want[k].elements(); ++i)
          ASSERT_NEAR(got[k].at(i), want[k].at(i), 1e-9) << chunks << " chunks, mesh " << mesh << ", layout " << layout;
    }
}

TEST(ProjectedCrossEntropy, ChunksTakeLessMemory) {
  const auto arena = [](std::int64_t chunks) {
    const Loss loss(chunks);
    return plan_memory(compile_program(loss.g, Mesh(), Layout(), loss.options(), {}, cpu_engine()).program).arena_bytes;
  };
  const std::int64_t logits = 8 * 16 * 96 * 8;
  EXPECT_GE(arena(1), logits);
  EXPECT_LT(arena(1), 2 * logits);  // written over by their derivatives
  EXPECT_LT(arena(4), arena(1) * 2 / 3);
}

}  // namespace
}  // namespace weft::loss_test

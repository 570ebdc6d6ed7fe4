// Groups along every set of axes of small meshes, all of them talking at once.
#include <algorithm>
#include <string>
#include <vector>

#include "backends.h"
#include "base/str.h"
#include "local.h"

#include <gtest/gtest.h>

namespace weft::comm::mesh_test {
namespace {

constexpr std::chrono::seconds kDeadline{60};

using Sizes = std::vector<int>;

int processors_of(const Sizes& mesh) {
  int product = 1;
  for (const int size : mesh) product *= size;
  return product;
}

std::vector<int> coordinates(const Sizes& mesh, ProcessorId processor) {
  std::vector<int> at(mesh.size());
  int rest = processor.number();
  for (std::size_t axis = mesh.size(); axis-- > 0; rest /= mesh[axis]) at[axis] = rest % mesh[axis];
  return at;
}

// The processors that differ from `processor` only along the axes whose bit is set, row-major.
std::vector<ProcessorId> members_along(const Sizes& mesh, unsigned axes, ProcessorId processor) {
  std::vector<ProcessorId> members;
  const std::vector<int> mine = coordinates(mesh, processor);
  for (const ProcessorId other : ids<ProcessorId>(processors_of(mesh))) {
    const std::vector<int> theirs = coordinates(mesh, other);
    bool together = true;
    for (std::size_t axis = 0; axis < mesh.size(); ++axis)
      together = together && ((axes >> axis & 1) != 0 || mine[axis] == theirs[axis]);
    if (together) members.push_back(other);
  }
  return members;
}

void check_group(Wire& wire, Group& group, ProcessorId processor, const std::vector<ProcessorId>& members,
                 std::size_t count) {
  const auto value = [&](ProcessorId who, std::size_t i) {
    return static_cast<float>(who.number() * 10 + static_cast<int>(i % 7));
  };
  const std::size_t size = members.size(), rank = static_cast<std::size_t>(group.rank());
  ASSERT_EQ(members[rank], processor);
  const Local<float> x(wire, processor, count), all(wire, processor, count * size);
  for (std::size_t i = 0; i < count; ++i) x[i] = value(processor, i);
  all_gather(group, x, all, "mesh", kDeadline);
  for (std::size_t i = 0; i < all.count(); ++i) ASSERT_EQ(all[i], value(members[i / count], i % count));
  all_reduce(group, x, x, Reduce::kSum, "mesh", kDeadline);
  for (std::size_t i = 0; i < count; ++i) {
    float want = 0;
    for (const ProcessorId member : members) want += value(member, i);
    ASSERT_EQ(x[i], want);
  }
  reduce_scatter(group, all, all.part(rank * count, count), Reduce::kMax, "mesh", kDeadline);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(all[rank * count + i], value(members[rank], i));
  barrier(group, "mesh", kDeadline);
}

class CommMesh : public testing::TestWithParam<std::tuple<Engine, Sizes>> {};

TEST_P(CommMesh, GroupsAlongEveryAxes) {
  const auto& [engine, mesh] = GetParam();
  for (const std::size_t count : {3u, 5000u})
    engine.run(processors_of(mesh), [&, &mesh = mesh](Wire& wire, ProcessorId processor) {
      std::vector<std::unique_ptr<Group>> groups;
      const unsigned sets = 1u << mesh.size();
      for (unsigned axes = 0; axes < sets; ++axes)
        groups.push_back(wire.join(processor, members_along(mesh, axes, processor)));
      for (int round = 0; round < 3; ++round)
        for (unsigned axes = 0; axes < sets; ++axes)
          check_group(wire, *groups[axes], processor, members_along(mesh, axes, processor), count);
    });
}

// Collectives of two groups in flight at once, waited for in another order than started.
TEST_P(CommMesh, GroupsInterleave) {
  const auto& [engine, mesh] = GetParam();
  const int size = processors_of(mesh);
  engine.run(size, [&, &mesh = mesh](Wire& wire, ProcessorId processor) {
    const std::vector<ProcessorId> row = members_along(mesh, 1u, processor);
    const std::unique_ptr<Group> some = wire.join(processor, row), all = wire.join(processor, everyone(size));
    for (int round = 0; round < 50; ++round) {
      const Local<std::int32_t> a(wire, processor, 700), b(wire, processor, 700);
      for (std::size_t i = 0; i < 700; ++i) a[i] = b[i] = 1;
      const Ticket first = some->start(Collective::kAllReduce, a, a, {.label = "a"});
      const Ticket second = all->start(Collective::kAllReduce, b, b, {.label = "b"});
      all->wait(second, kDeadline);
      some->wait(first, kDeadline);
      ASSERT_EQ(a[699], static_cast<int>(row.size()));
      ASSERT_EQ(b[699], size);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Meshes, CommMesh,
                         testing::Combine(testing::ValuesIn(engines()),
                                          testing::Values(Sizes{4}, Sizes{2, 2}, Sizes{2, 3}, Sizes{2, 2, 2})),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param).name;
                           for (const int size : std::get<1>(info.param)) name += str("_", size);
                           return name;
                         });

}  // namespace
}  // namespace weft::comm::mesh_test

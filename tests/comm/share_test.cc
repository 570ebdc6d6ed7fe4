// What rank 0 of an MPI job tells the others.
#include "comm/launch.h"
#include "comm/wire.h"

#include <gtest/gtest.h>

namespace weft::comm::share_test {
namespace {

TEST(CommShare, AllRanksGetTheTextOfRankZero) {
  const std::optional<Launch> launch = launched();
  if (!launch) GTEST_SKIP() << "not a rank of a job";
  EXPECT_EQ(share_by_mpi(launch->rank == 0 ? "weft 29400" : ""), "weft 29400");
  EXPECT_EQ(share_by_mpi(""), "");
}

}  // namespace
}  // namespace weft::comm::share_test

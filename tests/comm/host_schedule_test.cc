// Collectives between hosts without hosts: every member's items and steps, with messages as entries of a map. Shows that
// handlers agree on tags and sizes, whatever members live together, and that results are those of the rule.
#include "comm/host_schedule.h"

#include <cstring>
#include <map>
#include <tuple>

#include "base/str.h"
#include "local.h"

#include <gtest/gtest.h>

namespace weft::comm::host_schedule_test {
namespace {

using Bytes = std::vector<std::byte>;
using Hosts = std::vector<int>;

// from, to, tag -> what travels
using Messages = std::map<std::tuple<int, int, std::uint32_t>, Bytes>;

class Member {
 public:
  Member(const Hosts& hosts, int rank, const Joint& joint)
      : hosts_(hosts, rank),
        schedule_(hosts_),
        joint_(joint),
        staging_(HostSchedule::kStaging),
        pointers_(static_cast<int>(hosts.size())),
        tags_(schedule_.tags(joint.what, joint.dtype, joint.count)) {}

  // Does what can be done now; true if that was something.
  bool move(Messages& messages) {
    bool moved = false;
    for (;; moved = true) {
      if (next_ == steps_.size()) {
        if (!settled(messages)) return moved;
        if (item_ == schedule_.my_items(joint_)) return moved;
        schedule_.actions(joint_, item_++, staging_.data(), steps_);
        next_ = 0;
        continue;
      }
      const Action& action = steps_[next_];
      if (action.kind == Action::Kind::kSend) {
        const auto [entry, is_new] =
            messages.try_emplace({hosts_.rank, action.peer, action.tag}, action.data, action.data + action.bytes);
        EXPECT_TRUE(is_new) << "two messages with one tag";
        EXPECT_LT(action.tag, tags_);
      } else if (action.kind == Action::Kind::kReceive) {
        open_.push_back(action);
      } else {
        if (!settled(messages)) return moved;
        schedule_.work(joint_, action, staging_.data(), pointers_);
      }
      ++next_;
    }
  }

  bool is_done() const { return open_.empty() && next_ == steps_.size() && item_ == schedule_.my_items(joint_); }
  std::size_t items() const { return schedule_.my_items(joint_); }
  std::size_t items_here() const { return schedule_.items_here(joint_); }
  int host() const { return hosts_.here; }

 private:
  bool settled(Messages& messages) {
    std::erase_if(open_, [&](const Action& action) {
      const auto found = messages.find({action.peer, hosts_.rank, action.tag});
      if (found == messages.end()) return false;
      EXPECT_EQ(found->second.size(), action.bytes);
      std::memcpy(action.data, found->second.data(), action.bytes);
      messages.erase(found);
      return true;
    });
    return open_.empty();
  }

  HostMap hosts_;
  HostSchedule schedule_;
  const Joint& joint_;
  Bytes staging_;
  Pointers pointers_;
  std::uint32_t tags_;
  std::size_t item_ = 0, next_ = 0;
  std::vector<Action> steps_, open_;
};

template <class T>
struct Room {
  std::vector<std::vector<T>> in, out;
  std::vector<const std::byte*> in_at;
  std::vector<std::byte*> out_at;
  std::vector<int> source;
};

template <class T>
void run(const Hosts& hosts, Collective what, std::size_t count, bool in_place) {
  const std::size_t size = hosts.size();
  const std::size_t in_count =
      what == Collective::kReduceScatter || what == Collective::kAllToAll ? count * size : count;
  const std::size_t out_count = what == Collective::kAllGather || what == Collective::kAllToAll ? count * size : count;
  Room<T> room;
  for (std::size_t r = 0; r < size; ++r) {
    room.in.emplace_back(in_count);
    for (std::size_t i = 0; i < in_count; ++i) room.in[r][i] = sent<T>(static_cast<int>(r), i);
    room.out.emplace_back(out_count);
    // The first sends nothing and the last receives nothing; the others shift by one.
    room.source.push_back(r + 1 < size ? static_cast<int>(r) + 1 : -1);
  }
  for (std::size_t r = 0; r < size; ++r) {
    T* in = room.in[r].data();
    room.in_at.push_back(reinterpret_cast<std::byte*>(in));
    room.out_at.push_back(reinterpret_cast<std::byte*>(in_place ? in : room.out[r].data()));
  }
  const Joint joint{.what = what,
                    .reduce = Reduce::kSum,
                    .dtype = dtype_of_type<T>(),
                    .count = in_count,
                    .in = room.in_at,
                    .out = room.out_at,
                    .source = room.source};
  std::vector<std::unique_ptr<Member>> members;
  std::map<int, std::size_t> handled;
  for (std::size_t r = 0; r < size; ++r) {
    members.push_back(std::make_unique<Member>(hosts, static_cast<int>(r), joint));
    handled[members[r]->host()] += members[r]->items();
  }
  Messages messages;
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& member : members) moved = member->move(messages) || moved;
  }
  EXPECT_TRUE(messages.empty());
  for (std::size_t r = 0; r < size; ++r) {
    ASSERT_TRUE(members[r]->is_done()) << what << " hangs on rank " << r;
    EXPECT_EQ(members[r]->items_here(), handled[members[r]->host()]);
    const T* out = reinterpret_cast<const T*>(room.out_at[r]);
    for (std::size_t i = 0; i < out_count; ++i) {
      T want{};
      const int rank = static_cast<int>(r);
      const auto element = [&](int p, std::size_t at) { return sent<T>(p, at); };
      const auto sum = [&](std::size_t at) {
        return reduced<T>(Reduce::kSum, static_cast<int>(size), [&](int p) { return element(p, at); });
      };
      if (what == Collective::kAllReduce) want = sum(i);
      if (what == Collective::kReduceScatter) want = sum(r * count + i);
      if (what == Collective::kAllGather) want = element(static_cast<int>(i / count), i % count);
      if (what == Collective::kAllToAll) want = element(static_cast<int>(i / count), r * count + i % count);
      if (what == Collective::kPermute && rank + 1 < static_cast<int>(size)) want = element(rank + 1, i);
      ASSERT_EQ(std::memcmp(&want, &out[i], sizeof want), 0) << what << " rank " << r << " element " << i;
    }
  }
}

class CommItinerary : public testing::TestWithParam<Hosts> {};

TEST_P(CommItinerary, EveryCollective) {
  for (const std::size_t count : {1000u, 150'001u})
    for (const Collective what : {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather,
                                  Collective::kAllToAll, Collective::kPermute}) {
      run<float>(GetParam(), what, count, false);
      run<BF16>(GetParam(), what, count, false);
      if (what == Collective::kReduceScatter || what == Collective::kAllGather) continue;
      run<float>(GetParam(), what, count, true);
      run<BF16>(GetParam(), what, count, true);
    }
}

INSTANTIATE_TEST_SUITE_P(Hosts, CommItinerary,
                         testing::Values(Hosts{0, 1}, Hosts{0, 0, 1, 1}, Hosts{0, 1, 0, 1}, Hosts{5, 5, 2},
                                         Hosts{0, 1, 2}, Hosts{0, 1, 1, 2, 0}),
                         [](const auto& info) { return "on_" + weft::join(info.param, "_"); });

}  // namespace
}  // namespace weft::comm::host_schedule_test

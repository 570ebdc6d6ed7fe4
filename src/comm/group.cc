#include "comm/group.h"

#include <array>

#include "base/index.h"
#include "base/str.h"
#include "comm/failure.h"
#include "weft/error.h"

namespace weft::comm {

std::string_view name_of(Collective what) {
  static constexpr std::array<std::string_view, 6> kNames = {"all_reduce", "reduce_scatter", "all_gather",
                                                             "all_to_all", "permute",        "barrier"};
  return kNames[at(what)];
}

void Group::abort(std::string_view reason) { abort(Failure{.cause = std::string(reason)}); }

namespace {

bool counts_fit(Collective what, std::size_t in, std::size_t out, std::size_t size) {
  switch (what) {
    case Collective::kAllReduce:
    case Collective::kPermute: return in == out;
    case Collective::kReduceScatter: return in == out * size;
    case Collective::kAllGather: return out == in * size;
    case Collective::kAllToAll: return in == out && in % size == 0;
    case Collective::kBarrier: return in == 0 && out == 0;
  }
  return false;
}

[[noreturn]] void refuse(Collective what, const Args& args, const std::string& why) {
  throw InternalError(str(what, " '", args.label, "' was called ", why));
}

}  // namespace

void check_call(const Group& group, Collective what, const ConstBuffer& in, const Buffer& out, const Args& args) {
  const int size = group.size();
  if (!counts_fit(what, in.count, out.count, static_cast<std::size_t>(size)))
    refuse(what, args, str("with ", in.count, " elements in and ", out.count, " out, in a group of ", size));
  if (in.dtype != out.dtype) refuse(what, args, str("with ", in.dtype, " in and ", out.dtype, " out"));
  if ((in.count > 0 && !in.data) || (out.count > 0 && !out.data)) refuse(what, args, "with a null buffer");
  if (what != Collective::kPermute) return;
  if (args.source < -1 || args.source >= size || args.target < -1 || args.target >= size)
    refuse(what, args, str("with source ", args.source, " and target ", args.target, " in a group of ", size));
}

namespace {

void run(Group& group, Collective what, ConstBuffer in, Buffer out, const Args& args, Deadline deadline) {
  group.wait(group.start(what, in, out, args), deadline);
}

}  // namespace

void all_reduce(Group& group, ConstBuffer in, Buffer out, Reduce reduce, std::string_view label, Deadline deadline) {
  run(group, Collective::kAllReduce, in, out, {.reduce = reduce, .label = label}, deadline);
}

void reduce_scatter(Group& group, ConstBuffer in, Buffer out, Reduce reduce, std::string_view label,
                    Deadline deadline) {
  run(group, Collective::kReduceScatter, in, out, {.reduce = reduce, .label = label}, deadline);
}

void all_gather(Group& group, ConstBuffer in, Buffer out, std::string_view label, Deadline deadline) {
  run(group, Collective::kAllGather, in, out, {.label = label}, deadline);
}

void all_to_all(Group& group, ConstBuffer in, Buffer out, std::string_view label, Deadline deadline) {
  run(group, Collective::kAllToAll, in, out, {.label = label}, deadline);
}

void permute(Group& group, ConstBuffer in, Buffer out, int source, int target, std::string_view label,
             Deadline deadline) {
  run(group, Collective::kPermute, in, out, {.source = source, .target = target, .label = label}, deadline);
}

void barrier(Group& group, std::string_view label, Deadline deadline) {
  run(group, Collective::kBarrier, {}, {}, {.label = label}, deadline);
}

}  // namespace weft::comm

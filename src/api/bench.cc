// The collectives bench behind weft/detail/bench.h.
#include "weft/detail/bench.h"

#include "base/str.h"
#include "comm/measure.h"
#include "weft/error.h"

namespace weft::bench {

namespace {

comm::Collective kind_of(const std::string& name) {
  std::vector<std::string> known;
  for (int i = 0; i <= static_cast<int>(comm::Collective::kPermute); ++i) {
    const auto kind = static_cast<comm::Collective>(i);
    if (name_of(kind) == name) return kind;
    known.emplace_back(name_of(kind));
  }
  const std::string near = nearest_word(name, known);
  throw UserError(
      {.code = "bench.unknown-collective",
       .what = str("there is no collective '", name, "'"),
       .where = "bench::collectives",
       .fix = str(near.empty() ? "" : str("did you mean '", near, "'? "), "the kinds are: ", join(known, ", "))});
}

void check(const CollectivesOptions& options) {
  if (options.wire != "threads" && options.wire != "mpi")
    throw UserError({.code = "bench.unknown-wire",
                     .what = str("there is no wire '", options.wire, "' to measure"),
                     .where = "bench::collectives",
                     .fix = "the wires are: threads, mpi"});
  for (const int n : options.processors)
    if (n < 1 || n > 1024)
      throw UserError({.code = "bench.bad-processors",
                       .what = str("cannot measure on ", n, " processors"),
                       .where = "bench::collectives",
                       .fix = "give from 1 to 1024 processors"});
  for (const std::size_t bytes : options.bytes)
    if (bytes < 1 || bytes > std::size_t{1} << 34)
      throw UserError({.code = "bench.bad-bytes",
                       .what = str("cannot measure with buffers of ", bytes, " bytes"),
                       .where = "bench::collectives",
                       .fix = "give from 1 byte to 16 GiB"});
  if (options.repeats < 1 || options.repeats > 100000)
    throw UserError({.code = "bench.bad-repeats",
                     .what = str("cannot measure with ", options.repeats, " repeats"),
                     .where = "bench::collectives",
                     .fix = "give from 1 to 100000 repeats"});
}

comm::CollectiveTiming timing_of(const CollectiveTime& t) {
  return {.wire = t.wire,
          .what = kind_of(t.kind),
          .processors = t.processors,
          .bytes = t.bytes,
          .median_seconds = t.median_seconds,
          .p10_seconds = t.p10_seconds,
          .p90_seconds = t.p90_seconds,
          .gigabytes_per_second = t.gigabytes_per_second};
}

}  // namespace

std::vector<CollectiveTime> collectives(const CollectivesOptions& options) {
  check(options);
  std::vector<comm::Collective> kinds;
  for (const std::string& name : options.kinds) kinds.push_back(kind_of(name));
  std::vector<CollectiveTime> times;
  for (const comm::CollectiveTiming& t :
       comm::measure_collectives(kinds, options.processors, options.bytes, options.repeats, options.wire))
    times.push_back({.wire = t.wire,
                     .kind = std::string(name_of(t.what)),
                     .processors = t.processors,
                     .bytes = t.bytes,
                     .median_seconds = t.median_seconds,
                     .p10_seconds = t.p10_seconds,
                     .p90_seconds = t.p90_seconds,
                     .gigabytes_per_second = t.gigabytes_per_second});
  return times;
}

std::string table(const std::vector<CollectiveTime>& times) {
  std::vector<comm::CollectiveTiming> timings;
  for (const CollectiveTime& t : times) timings.push_back(timing_of(t));
  return comm::table_of(timings);
}

std::string json(const std::vector<CollectiveTime>& times) {
  std::vector<std::string> lines;
  for (const CollectiveTime& t : times) lines.push_back("  " + comm::json_of(timing_of(t)));
  return "[\n" + join(lines, ",\n") + "\n]";
}

}  // namespace weft::bench

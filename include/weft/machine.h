// Machine: what processors compute, read and send in a second. docs/machines.md describes the files that hold it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "weft/dtype.h"

namespace weft {

// A positive number at every point of a grid. Between points the logarithm of the number is linear in the logarithms of
// the sizes; beyond the first and last size of an axis it is constant. No axes: one number.
struct Table {
  std::vector<std::vector<double>> axes;  // each ascending
  std::vector<double> values;             // row-major, the last axis is the fastest

  static Table constant(double value) { return {{}, {value}}; }
  double at(std::span<const double> sizes) const;
};

// Matrix products of factors of one dtype.
struct ProductRates {
  DType dtype = DType::kF32;
  Table rate;                                 // flops per second over m, n and k of out[m, n] = x[m, k] y[k, n]
  std::array<std::int64_t, 3> tile{1, 1, 1};  // m, n and k are rounded up to multiples of these
};

// Attention of operands of one dtype, over the length of the memory and the size of a key.
struct AttendRates {
  DType dtype = DType::kF32;
  Table forward, backward;  // flops per second, of the flops that explain counts
};

// The kernels of a processor that has this many cores to itself.
struct Rates {
  int cores = 1;
  double overhead = 0;  // seconds that an instruction takes besides its work
  // Bytes per second that an instruction reads or writes of a value, over the bytes that the processor has touched since
  // it last touched the value: what caches hold is faster.
  Table sweep;
  double pointwise = 0;  // flops per second of functions of single elements
  // Of the time for bytes and the time for flops of an instruction: the share of the shorter that the longer hides.
  double hidden = 1;
  double random = 0;                        // draws per second
  std::vector<ProductRates> products = {};  // by dtype; a missing dtype has the machine's peak
  std::vector<AttendRates> attention = {};  // a missing dtype is computed as products

  // Seconds of an instruction that takes so many seconds for its bytes alone, and for its flops alone.
  double seconds_of_both(double of_bytes, double of_flops) const {
    return of_bytes > of_flops ? of_bytes + (1 - hidden) * of_flops : of_flops + (1 - hidden) * of_bytes;
  }
};

enum class Topology : std::uint8_t { kRing, kTorus, kSwitch, kSharedMemory };

// One level of links. It joins units of the level below (processors, at the innermost level).
struct Link {
  std::string name;
  Topology topology = Topology::kSwitch;
  std::vector<int> sides;  // units that it joins; of a torus along each of its sides, the innermost first
  double latency = 0;      // seconds between neighbours
  double bandwidth = 0;    // bytes per second in one direction, of a unit; of a ring or torus, of one wire
  int shared_by = 1;       // processors that share this bandwidth

  int units() const;  // the product of the sides
};

// One kind of collective as measured, instead of the links' formulas.
struct CollectiveTimes {
  std::string kind;  // "all_reduce", …
  Table seconds;     // over the processors of a group and the bytes of the larger of a processor's input and output
};

struct Machine {
  std::string name;
  int processors = 1;                  // the most that a mesh may have
  int cores = 0;                       // that all processors share; 0: each has its own
  std::int64_t memory_bytes = 0;       // of a processor; 0: not known
  double bytes_per_second = 0;         // of a processor's memory, read and written, at its peak
  std::map<DType, double> peaks = {};  // flops per second at the peak, by dtype; f32 is always there
  double step_seconds = 0;             // of a step, besides its instructions
  bool overlaps = true;                // whether a collective proceeds while its processor computes
  // Of the time that processors compute between two collectives: how much later the members of a group are there than
  // if all had been equally fast.
  double skew = 0;
  std::vector<Rates> rates = {};  // ascending in cores; at least one
  std::vector<Link> links = {};   // the innermost first
  std::vector<CollectiveTimes> collectives = {};

  // The peak of a dtype; of f32 if the description has none for it; 0 if it has none at all.
  double peak(DType dtype = DType::kF32) const;
  // The rates of one of `processors` processors.
  const Rates& rates_of(int processors) const;
  // How many processors take turns on one core.
  double crowding(int processors) const;

  // One processor with one rate for all flops and one for all bytes.
  static Machine uniform(double flops_per_second, double bytes_per_second);
  // A shipped description by its name ("h200x8"), or the path of a file. UserError, with line and fix, for an unknown
  // name, an unknown key or a value out of range.
  static Machine load(const std::string& name_or_path);
  // `origin` names the text in errors.
  static Machine parse(const std::string& text, const std::string& origin);
  static std::vector<std::string> shipped();  // the names that load() knows

  std::string text() const;  // a description that parse() reads
};

}  // namespace weft

// Attention of the queries that share one memory, on one thread: blocks of queries against all they see, with the scores
// of a block in scratch. Compiled for every x86 level; the machine's best is chosen at run time.
#pragma once

#include <cstdint>
#include <span>

namespace weft::cpu {

// A matrix where it lies: f32, or bf16 if `half`.
struct AttendMatrix {
  void* data = nullptr;
  bool half = false;
  std::int64_t row = 0, column = 0;  // strides in elements
  std::int64_t source = 0;           // likewise, from one source to the next
};

struct AttendSizes {
  std::int64_t length = 0, memory = 0, key = 0, value = 0;
  std::int64_t end = 0;  // of the memory: what lies behind is not read
  float scale = 1;
  bool causal = false;
  std::int64_t ahead = 0;  // the position of the first query less that of the first of the memory

  static std::int64_t padded(std::int64_t n) { return (n + 15) / 16 * 16; }
  // Queries of a block: fewer where they see much, so that their scores stay in cache.
  std::int64_t block() const;
  std::int64_t seen_by(std::int64_t query) const;  // how much of the memory
};

// What queries of one group need: rows are queries or memory, columns key or value.
struct AttendItem {
  AttendMatrix q, k, v, y, dy, dq, dk, dv;
  AttendMatrix bias;                        // [queries, memory]; no data: none
  AttendMatrix dbias;                       // likewise, f32: derivatives are added to it
  AttendMatrix total;                       // one column: of e^(score - the query's largest score)
  const std::int64_t* query_ids = nullptr;  // null: none
  const std::int64_t* memory_ids = nullptr;
  const std::int64_t* sources = nullptr;  // of each row of k and v; null: all have the first
};

// Whether keys and values are read where they lie: there are so few queries that packing would cost more than it saves.
bool reads_in_place(const AttendSizes& sizes, const AttendMatrix& k, const AttendMatrix& v);

// Floats of scratch, aligned to 64 bytes; few_scratch: of one item.
std::int64_t few_scratch(const AttendSizes& sizes);
std::int64_t forward_scratch(const AttendSizes& sizes);
std::int64_t back_scratch(const AttendSizes& sizes);

// If reads_in_place(): items with the same sizes and sources, and strides of k and v. `scratch`: few_scratch() for each.
void attend_few(const AttendSizes& sizes, std::span<const AttendItem> items, float* scratch);

// `fresh`: the memory is not that of the last call with this scratch.
void attend_rows(const AttendSizes& sizes, const AttendItem& item, bool fresh, float* scratch);
// dk and dv are summed in scratch from a `fresh` call on, and written at the `last` one.
void attend_rows_back(const AttendSizes& sizes, const AttendItem& item, bool fresh, bool last, float* scratch);

}  // namespace weft::cpu

// index.json: which variables a checkpoint has, and in which piece of which file they lie. See docs/checkpoints.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/checkpoint.h"

namespace weft::checkpoint {

// A box of a variable: the tensor of the variable's name in a .safetensors.
struct Piece {
  std::string file;
  std::vector<std::int64_t> begin, sizes;
  std::uint32_t crc = 0;  // of its bytes
};

// Invariant of a whole one: the pieces are equal boxes of a grid, each there once.
struct IndexVariable {
  CheckpointVariable variable;
  std::vector<Piece> pieces;
};

struct IndexText {
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;
};

struct Index {
  std::int64_t step = 0;
  std::string mesh;  // that wrote it; for the reader's eyes
  std::map<std::string, IndexVariable> variables;
  std::map<std::string, std::uint64_t> files;  // name -> bytes
  std::map<std::string, IndexText> texts;
};

std::string to_text(const Index& index);

// UserError, with the path, for whatever breaks the format: unknown keys, other versions, names that lead out of the
// folder, a checksum that is not the text's. `is_whole`: also if pieces are missing, overlap or do not fit.
Index parse_index(const std::string& path, std::string_view text, bool is_whole = true);
// The same without the checksum.
Index parse_unchecked(const std::string& path, std::string_view text, bool is_whole);

// The files' and pieces of `more`, which knows the same variables, are added.
void merge(Index& index, const Index& more);

// Whether a file of this name can lie in a checkpoint beside what is there anyway.
bool is_plain_name(const std::string& name);
bool is_text_name(const std::string& name);
// UserError for a step or names of texts that a checkpoint cannot have.
void check_state(const CheckpointState& state, const std::string& where);
std::string shard_name(ProcessorId processor);  // shard-3.safetensors
std::string hex(std::uint32_t number);
std::string list_text(const std::vector<std::int64_t>& numbers);  // "[0 4]"
std::vector<std::int64_t> sizes_of(const Shape& shape);

}  // namespace weft::checkpoint

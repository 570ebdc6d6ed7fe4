// A checkpoint that has been opened: its index, and its files as they are needed.
#pragma once

#include <mutex>

#include "train/checkpoint_index.h"
#include "weft/tensor_file.h"

namespace weft {

struct Checkpoint::Data {
  std::string path;
  CheckpointState state;
  checkpoint::Index index;
  std::map<std::string, CheckpointVariable> variables;

  const checkpoint::IndexVariable& variable(const std::string& name) const;  // UserError if there is none

  // The part of a variable. A piece that is wanted whole is held to its checksum.
  void read(const std::string& name, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& sizes,
            std::span<std::byte> out) const;
  // Reads all of a piece for its checksum alone. UserError if it is another.
  void verify(const std::string& name, const checkpoint::Piece& piece) const;

 private:
  // The file of a piece, which has it as the index says. UserError if it does not.
  std::shared_ptr<const TensorFile> file_of(const std::string& name, const checkpoint::Piece& piece) const;
  void check_crc(const std::string& name, const checkpoint::Piece& piece, std::uint32_t crc) const;

  mutable std::mutex mutex_;
  mutable std::map<std::string, std::shared_ptr<const TensorFile>> opened_;
};

}  // namespace weft

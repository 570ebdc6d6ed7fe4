// The two file formats; each reader checks the complete header and returns its contents.
#pragma once

#include <map>
#include <string>

#include "data/file_bytes.h"
#include "weft/tensor_file.h"

namespace weft {

struct FileHeader {
  std::map<std::string, FileTensor> tensors;
  std::map<std::string, std::string> metadata;
};

FileHeader read_safetensors_header(const FileBytes& file);

bool is_npy(const FileBytes& file);  // by its first bytes
FileHeader read_npy_header(const FileBytes& file);

// The bytes of elements of `bits` each; none if they are no whole number of bytes or do not fit 64 bits.
std::optional<std::uint64_t> bytes_of(const std::vector<std::int64_t>& sizes, std::uint64_t bits);
// "[2 3]"
std::string sizes_text(const std::vector<std::int64_t>& sizes);

}  // namespace weft

// TensorFile: the tensors of a .safetensors or .npy file. Files know sizes but no dim names: whoever reads gives them.
//
// Opening reads and checks the header alone, reading reads one tensor alone. Whatever the bytes are, nothing crashes and no
// more is allocated than the file is long. UserError, with the file, the byte and the sizes, for a file that breaks its
// format; RunError if the system fails to read or write. Threads: reading is safe from many at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/array.h"

namespace weft {

// What a file says of one tensor.
struct FileTensor {
  std::string stored_as;       // as the file writes it: "F32", "BF16", …; "<f4", …
  std::optional<DType> dtype;  // none if we have no such dtype; then it cannot be read
  std::vector<std::int64_t> sizes;
  std::uint64_t offset = 0;  // of its first byte in the file
  std::uint64_t bytes = 0;
  bool column_major = false;  // an .npy in Fortran order; read() gives row-major all the same
};

class FileBytes;

class TensorFile {
 public:
  // The format is told by the first bytes. The one tensor of an .npy is called like the file, without folders and ending.
  static TensorFile open(const std::string& path);
  // As if a file of this path had these bytes.
  static TensorFile of_bytes(const std::string& path, std::vector<std::byte> bytes);

  const std::string& path() const;
  const std::map<std::string, FileTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }  // of a .safetensors

  // The tensor with its dims named in order. UserError for an unknown name, another number of dims, a size of 0 or a
  // dtype that we lack.
  Array read(const std::string& name, const std::vector<std::string>& dims) const;

 private:
  explicit TensorFile(std::shared_ptr<const FileBytes> bytes);
  std::shared_ptr<const FileBytes> bytes_;
  std::map<std::string, FileTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

// Writes beside the path and renames, so that a file of that name is whole or as it was.
void write_safetensors(const std::string& path, const std::map<std::string, Array>& tensors,
                       const std::map<std::string, std::string>& metadata = {});
void write_npy(const std::string& path, const Array& array);  // UserError for bf16, which .npy cannot say

}  // namespace weft

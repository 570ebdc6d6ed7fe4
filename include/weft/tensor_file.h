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
#include <span>
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
  // The part of a tensor from `begin` on, of these sizes, dense: only its bytes are read, and gaps between them of a page
  // or so. UserError as read; also for an .npy in Fortran order. InternalError if the part or `out` does not fit.
  void read_into(const std::string& name, const std::vector<std::int64_t>& begin,
                 const std::vector<std::int64_t>& sizes, std::span<std::byte> out) const;

 private:
  explicit TensorFile(std::shared_ptr<const FileBytes> bytes);
  const FileTensor& readable(const std::string& name) const;
  std::shared_ptr<const FileBytes> bytes_;
  std::map<std::string, FileTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

// What a .safetensors begins with, up to its data: the bytes of these tensors, in this order, without gaps. A multiple of
// 8 bytes long. UserError for a name that the format cannot hold; `path` is for that.
struct StoredTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> sizes;
};
std::string safetensors_header(const std::string& path, const std::vector<StoredTensor>& tensors,
                               const std::map<std::string, std::string>& metadata = {});

// Writes beside the path and renames, so that a file of that name is whole or as it was.
void write_safetensors(const std::string& path, const std::map<std::string, Array>& tensors,
                       const std::map<std::string, std::string>& metadata = {});
void write_npy(const std::string& path, const Array& array);  // UserError for bf16, which .npy cannot say

}  // namespace weft

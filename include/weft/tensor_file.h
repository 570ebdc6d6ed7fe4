// TensorFile: the tensors of a .safetensors or .npy file. Files have sizes but no dim names: the caller gives them.
//
// Opening reads and checks only the header; reading reads only one tensor. No content of a file leads to a crash or to
// an allocation larger than the file. UserError, with the file, the byte and the sizes, for a file that breaks its
// format; RunError if the system fails to read or write. Threads: several threads may read at once.
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

// The description of one tensor in a file.
struct FileTensor {
  std::string stored_as;       // the file's word: "F32", "BF16", …; "<f4", …
  std::optional<DType> dtype;  // none for a dtype that Weft lacks; the tensor cannot be read then
  std::vector<std::int64_t> sizes;
  std::uint64_t offset = 0;  // of its first byte in the file
  std::uint64_t bytes = 0;
  bool column_major = false;  // an .npy in Fortran order; read() still returns row-major
};

class FileBytes;

class TensorFile {
 public:
  // The first bytes determine the format. The single tensor of an .npy has the name of the file, without folders and
  // extension.
  static TensorFile open(const std::string& path);
  // Like open() on a file of this path with these bytes.
  static TensorFile of_bytes(const std::string& path, std::vector<std::byte> bytes);

  const std::string& path() const;
  const std::map<std::string, FileTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }  // of a .safetensors

  // The tensor with its dims named in order. UserError for an unknown name, a different number of dims, a size of 0 or
  // a dtype that Weft lacks.
  Array read(const std::string& name, const std::vector<std::string>& dims) const;
  // The part of a tensor from `begin` on, of these sizes, dense. Reads only its bytes, and gaps between them of about a
  // page. UserError like read(); also for an .npy in Fortran order. InternalError if the part or `out` does not fit.
  void read_into(const std::string& name, const std::vector<std::int64_t>& begin,
                 const std::vector<std::int64_t>& sizes, std::span<std::byte> out) const;

 private:
  explicit TensorFile(std::shared_ptr<const FileBytes> bytes);
  const FileTensor& readable(const std::string& name) const;
  std::shared_ptr<const FileBytes> bytes_;
  std::map<std::string, FileTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

// Writes to a temporary file in the same folder and renames it, so that a file at the path is complete or unchanged.
void write_safetensors(const std::string& path, const std::map<std::string, Array>& tensors,
                       const std::map<std::string, std::string>& metadata = {});
void write_npy(const std::string& path, const Array& array);  // UserError for bf16, which .npy does not have

}  // namespace weft

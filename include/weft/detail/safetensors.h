// The header of a .safetensors file, for code that writes the data itself. Not part of the API's promise: it may change
// in any release.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "weft/dtype.h"

namespace weft {

// The header of a .safetensors up to its data: the bytes of these tensors, in this order, without gaps. Its length is a
// multiple of 8 bytes. UserError for a name that the format cannot hold; the error names `path`.
struct StoredTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> sizes;
};
std::string safetensors_header(const std::string& path, const std::vector<StoredTensor>& tensors,
                               const std::map<std::string, std::string>& metadata = {});

}  // namespace weft

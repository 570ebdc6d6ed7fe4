// Opens bytes as a file of tensors and reads them all.
#pragma once

#include <cstring>
#include <vector>

#include "fuzz/target.h"
#include "weft/tensor_file.h"

namespace weft::fuzz {

inline void read_all(const char* path, const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  accepts([&] {
    const TensorFile file = TensorFile::of_bytes(path, std::move(bytes));
    for (const auto& [name, tensor] : file.tensors()) {
      demand(tensor.offset <= size && tensor.bytes <= size - tensor.offset, "a tensor lies outside of its file");
      std::vector<std::string> dims;
      for (std::size_t i = 0; i < tensor.sizes.size(); ++i) dims.push_back("d" + std::to_string(i));
      accepts([&] {
        const Array array = file.read(name, dims);
        demand(static_cast<std::uint64_t>(array.elements()) * size_of(array.dtype()) == tensor.bytes,
               "a tensor has other bytes than its file says");
      });
    }
  });
}

}  // namespace weft::fuzz

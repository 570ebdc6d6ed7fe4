#include "data/hash.h"

#include <algorithm>

#include "data/file_bytes.h"

namespace weft::data {

void add_blocks(const FileBytes& file, Hash& hash) {
  constexpr std::uint64_t kBlocks = 64, kBytes = 4096;
  hash.add(file.size());
  const std::uint64_t last = file.size() > kBytes ? file.size() - kBytes : 0;
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    const std::uint64_t begin = last / (kBlocks - 1) * i + (i + 1 == kBlocks ? last % (kBlocks - 1) : 0);
    hash.add(file.read_text(begin, std::min(kBytes, file.size() - begin)));
    if (last == 0) break;
  }
}

}  // namespace weft::data

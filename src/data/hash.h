// A hash of bytes, the same on every machine. It distinguishes files; it is not cryptographic.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace weft {
class FileBytes;
}

namespace weft::data {

// A bijection of 64 bits in which every bit depends on all bits (splitmix64).
inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

class Hash {
 public:
  void add(std::uint64_t number) { state_ = mixed(state_ ^ number); }
  void add(std::string_view bytes) {  // with its length: "ab", "c" is not "a", "bc"
    add(bytes.size());
    for (; bytes.size() >= 8; bytes.remove_prefix(8)) add(word(bytes, 8));
    if (!bytes.empty()) add(word(bytes, bytes.size()));
  }
  std::string text() const {
    std::string out;
    for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[state_ >> shift & 15];
    return out;
  }

 private:
  static std::uint64_t word(std::string_view bytes, std::size_t count) {
    std::uint64_t out = 0;
    std::memcpy(&out, bytes.data(), count);
    return out;
  }
  std::uint64_t state_ = 0;
};

// Size and some blocks of a file's contents: enough to tell files apart without reading all of them.
void add_blocks(const FileBytes& file, Hash& hash);

}  // namespace weft::data

// CRC-32C, eight bytes at a time, by tables: about 2 GB/s.
#include <array>

#include "train/checkpoint_files.h"

namespace weft::checkpoint {

namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // bits reversed
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
    tables[0][i] = crc;
  }
  for (std::size_t t = 1; t < 8; ++t)
    for (std::size_t i = 0; i < 256; ++i) tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 255];
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t crc32c(std::uint32_t before, std::span<const std::byte> bytes) {
  std::uint32_t crc = ~before;
  const auto at = [](std::size_t table, std::uint64_t index) { return kTables[table][index & 255]; };
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    std::uint64_t word = 0;
    for (std::size_t i = 8; i-- > 0;) word = word << 8 | static_cast<std::uint64_t>(bytes[i]);
    word ^= crc;
    crc = at(7, word) ^ at(6, word >> 8) ^ at(5, word >> 16) ^ at(4, word >> 24) ^ at(3, word >> 32) ^
          at(2, word >> 40) ^ at(1, word >> 48) ^ at(0, word >> 56);
  }
  for (const std::byte byte : bytes) crc = crc >> 8 ^ at(0, crc ^ static_cast<std::uint32_t>(byte));
  return ~crc;
}

std::uint32_t crc32c(std::string_view text) { return crc32c(0, std::as_bytes(std::span(text.data(), text.size()))); }

}  // namespace weft::checkpoint

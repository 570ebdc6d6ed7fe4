// Making files of arrays by hand, right ones and broken ones.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace weft::test {

inline std::vector<std::byte> bytes_of_text(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// `count` bytes of a number, the lowest first.
inline std::string little(std::uint64_t number, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += static_cast<char>(number >> (8 * i) & 255);
  return out;
}

inline std::string npy(const std::string& dict, const std::string& data, int version) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  return out + little(dict.size(), version == 1 ? 2 : 4) + dict + data;
}

inline std::string safetensors(const std::string& header, const std::string& data = "") {
  return little(header.size(), 8) + header + data;
}

// A path in a folder of this process.
inline std::string scratch(const std::string& name) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("weft_data_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  return (folder / name).string();
}

// The path of a file of that name with these bytes.
inline std::string file_with(const std::string& name, const std::string& bytes) {
  std::ofstream(scratch(name), std::ios::binary) << bytes;
  return scratch(name);
}

}  // namespace weft::test

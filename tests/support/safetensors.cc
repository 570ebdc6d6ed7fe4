// The format: eight bytes with the length of a JSON header (little-endian), the header, the data.
#include "support/safetensors.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace weft::test {

namespace {

DType dtype_named(const std::string& name) {
  if (name == "F32") return DType::kF32;
  if (name == "I32") return DType::kI32;
  throw std::runtime_error("this reader does not know dtype " + name);
}

}  // namespace

Safetensors::Safetensors(const std::string& path) : path_(path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::uint64_t length = 0;
  if (bytes.size() >= sizeof length) std::memcpy(&length, bytes.data(), sizeof length);
  if (bytes.size() < sizeof length || length > bytes.size() - sizeof length)
    throw std::runtime_error("not a safetensors file: " + path);
  const auto header = bytes.begin() + sizeof length, data = header + static_cast<std::ptrdiff_t>(length);
  data_.assign(data, bytes.end());
  const nlohmann::json entries = nlohmann::json::parse(header, data);
  for (const auto& [name, entry] : entries.items()) {
    if (name == "__metadata__") continue;
    const auto offsets = entry.at("data_offsets").get<std::vector<std::size_t>>();
    entries_[name] = {dtype_named(entry.at("dtype")), entry.at("shape").get<std::vector<std::int64_t>>(),
                      offsets.at(0), offsets.at(1)};
  }
}

std::vector<std::string> Safetensors::names(const std::string& prefix) const {
  std::vector<std::string> found;
  for (auto at = entries_.lower_bound(prefix); at != entries_.end() && at->first.starts_with(prefix); ++at)
    found.push_back(at->first.substr(prefix.size()));
  return found;
}

Array Safetensors::read(const std::string& name, const std::vector<std::string>& dims) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw std::runtime_error("no tensor '" + name + "' in " + path_);
  const Entry& entry = found->second;
  if (entry.sizes.size() != dims.size())
    throw std::runtime_error("tensor '" + name + "' has " + std::to_string(entry.sizes.size()) + " dims in " + path_);
  std::vector<Dim> shape;
  for (std::size_t i = 0; i < dims.size(); ++i) shape.push_back({dims[i], entry.sizes[i]});
  Array array{Shape(shape), entry.dtype};
  const std::size_t size = static_cast<std::size_t>(array.elements()) * size_of(entry.dtype);
  if (entry.end - entry.begin != size || entry.end > data_.size())
    throw std::runtime_error("tensor '" + name + "' is cut short in " + path_);
  std::memcpy(array.bytes(), data_.data() + entry.begin, size);
  return array;
}

}  // namespace weft::test

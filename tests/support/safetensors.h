// A small reader of safetensors files, for the data of tests. Reads the whole file; f32 and i32 only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weft/array.h"

namespace weft::test {

class Safetensors {
 public:
  // Throws std::runtime_error, with the path, for what cannot be read.
  explicit Safetensors(const std::string& path);

  bool has(const std::string& name) const { return entries_.contains(name); }
  // The names that begin with `prefix`, without it, in order.
  std::vector<std::string> names(const std::string& prefix = "") const;
  const std::vector<std::int64_t>& sizes(const std::string& name) const { return entries_.at(name).sizes; }
  // The tensor with its dims named in order. Throws std::runtime_error for an unknown name or another number of dims.
  Array read(const std::string& name, const std::vector<std::string>& dims) const;

 private:
  struct Entry {
    DType dtype;
    std::vector<std::int64_t> sizes;
    std::size_t begin, end;
  };
  std::string path_;
  std::vector<char> data_;
  std::map<std::string, Entry> entries_;
};

}  // namespace weft::test

// What fuzz targets share: bytes in, and only the errors that outside bytes may cause.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "weft/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace weft::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Ends the process, which the fuzzer takes for a finding.
[[noreturn]] inline void report(const char* what) {
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

inline void demand(bool holds, const char* what) {
  if (!holds) report(what);
}

// Whether f ends well. A UserError is an answer; anything else that is thrown is a finding.
template <class F>
bool accepts(const F& f) {
  try {
    f();
    return true;
  } catch (const UserError&) {
    return false;
  } catch (const std::exception& error) {
    report(error.what());
  }
}

}  // namespace weft::fuzz

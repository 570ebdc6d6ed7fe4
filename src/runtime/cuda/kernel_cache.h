// Files of this engine that save time at the next start: compiled kernels and tuned products.
#pragma once

#include <optional>
#include <string>

namespace weft::cuda {

// The file for what `about` describes, in WEFT_CUDA_CACHE or the user's folder of caches; "" if there are to be no files.
std::string cache_file(const std::string& kind, const std::string& about);

// A warning on the error stream, each text once.
void warn_of_cache(const std::string& text);

// The binary of a source, compiled before for this architecture with this version of NVRTC.
std::optional<std::string> find_binary(const std::string& source, const std::string& architecture);
void keep_binary(const std::string& source, const std::string& architecture, const std::string& binary);

}  // namespace weft::cuda

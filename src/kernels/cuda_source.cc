#include "kernels/cuda_source.h"

#include "base/str.h"
#include "kernels/embedded.h"

namespace weft {

std::string cuda_pointwise_source() {
  return str(embedded::kCuda, embedded::kScalar, embedded::kVmath,
             "}  // namespace weft::vmath\n\nnamespace weft::bodies {\nnamespace math = vmath;\n", embedded::kBodies,
             embedded::kPointwise, "}  // namespace weft::bodies\n");
}

}  // namespace weft

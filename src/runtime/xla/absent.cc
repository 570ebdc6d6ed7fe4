#include "base/str.h"
#include "runtime/xla/open.h"
#include "weft/error.h"

namespace weft {

namespace {

constexpr const char* kWhy = "this build of Weft has no XLA engine, because it found no header pjrt_c_api.h";

}  // namespace

const Engine& xla_engine(const std::string&, const std::string& where) {
  throw UserError({.code = "device.xla-not-built",
                   .what = str("the device 'xla' cannot be used: ", kWhy),
                   .where = where,
                   .fix =
                       "run scripts/setup where it can reach PyPI, or configure with -DWEFT_PJRT_INCLUDE=FOLDER; then "
                       "build Weft again"});
}

std::vector<std::pair<std::string, std::string>> describe_xla(const std::string&) {
  return {{"device xla", str("not used: ", kWhy)}};
}

}  // namespace weft

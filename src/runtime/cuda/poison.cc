#include "runtime/cuda/poison.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace weft::cuda {

bool wants_poison() {
  const char* text = std::getenv("WEFT_CUDA_POISON");
  return text && std::string_view(text) != "" && std::string_view(text) != "0";
}

std::vector<Storage> dead_storages(const MemoryPlan& plan, int before, int position, int size) {
  std::vector<Storage> dead;
  for (const Storage& storage : plan.storages) {
    if (storage.last <= before || storage.last > position || storage.last >= size || storage.bytes == 0) continue;
    const bool is_shared = std::ranges::any_of(plan.storages, [&](const Storage& other) {
      return other.first <= position && other.last > position && other.offset < storage.offset + storage.bytes &&
             storage.offset < other.offset + other.bytes;
    });
    if (!is_shared) dead.push_back(storage);
  }
  return dead;
}

}  // namespace weft::cuda

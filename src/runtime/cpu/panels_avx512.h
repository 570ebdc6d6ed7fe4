// The inner loops of products with a matrix in panels, for AVX-512 with products of bf16 and i8. A panel is 16 columns of b in
// words of 32 bits, [k in words][16]: a word holds one f32, or two bf16 or four i8 of one column. Plain types only:
// panels_avx512.cc is compiled for that instruction set and must not share inline code with other files.
#pragma once

#include <cstdint>

namespace weft::cpu::avx512 {

enum class Words { kF32, kBF16, kI8 };

constexpr int kLanes = 16;      // columns of a panel
constexpr int kMostPanels = 4;  // that are multiplied together

// Rows of a, as words side by side, and up to four panels. Distances in bytes.
struct PanelTile {
  const char* a = nullptr;
  std::int64_t a_row = 0;
  std::int64_t rows = 0, words = 0;
  const char* b[kMostPanels] = {};
  std::int64_t step = 4 * kLanes;  // from one word of a panel to the next
  char* c[kMostPanels] = {};
  std::int64_t c_row = 0;
  std::int64_t columns = 0;    // of all panels; the last panel may have fewer than 16
  const char* next = nullptr;  // as many bytes as the panels have, which are read soon after; null: unknown
};

// Copies rows of i8, each raised by 128 and filled up to `to_row` bytes.
void raise_rows(const char* a, std::int64_t a_row, std::int64_t rows, std::int64_t bytes, char* to,
                std::int64_t to_row);

// c = or += a b. Sums are f32, of i8 they are i32. a of i8 comes from raise_rows().
void multiply_panels(Words kind, const PanelTile& tile, bool adds);

}  // namespace weft::cpu::avx512

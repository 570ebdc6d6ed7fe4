// Contractions whose second operand lies in panels: [panels, k in words, 16 columns, numbers of a word], as copies of kernels
// for decoding do. Such a product reads each number once, from the begin of a panel to its end, whatever the number of
// rows.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "program/matrix_form.h"
#include "runtime/cpu/panels_avx512.h"
#include "runtime/host/kernel.h"
#include "runtime/host/workers.h"

namespace weft::cpu {

// Columns of a panel on this CPU; 0 if it lacks the instructions.
std::int64_t panel_lanes();

// Products of the same rows with up to four panels. Offsets in elements.
struct PanelGroup {
  std::int64_t x = 0;
  std::int64_t y[avx512::kMostPanels] = {}, out[avx512::kMostPanels] = {};
  int panels = 0;
};

struct PanelForm {
  avx512::Words kind = avx512::Words::kF32;
  std::int64_t rows = 0, x_row = 0, out_row = 0;  // elements
  std::int64_t words = 0;
  std::vector<PanelGroup> groups;
};

// Empty if y does not lie in panels, x's words do not lie side by side, or the CPU lacks the instructions.
std::optional<PanelForm> panel_form(const TensorView& x, const TensorView& y, const TensorView& out);

class PanelContraction {
 public:
  PanelContraction(PanelForm form, const TensorView& x, const TensorView& y, const TensorView& out, Workers& workers);

  void run();

 private:
  // The tasks of a worker that no thread has taken.
  struct alignas(64) Tasks {
    std::atomic<std::int64_t> next = 0;
    std::int64_t begin = 0, end = 0;
  };

  // Rows of x, as a tile takes them.
  struct Rows {
    const char* data = nullptr;
    std::int64_t row = 0;            // bytes from one to the next
    std::int64_t begin = -1, x = 0;  // the first row, and the offset of the group
  };

  void run_share(int worker);
  void run_task(std::int64_t task, bool has_next, int worker, Rows& raised);
  Rows rows_of(std::int64_t first, std::int64_t x) const;

  PanelForm form_;
  TensorView x_, y_, out_;
  Workers& workers_;
  std::int64_t rows_ = 0;  // of a task
  int sharing_ = 1;        // workers that have tasks
  std::unique_ptr<Tasks[]> tasks_;
};

}  // namespace weft::cpu

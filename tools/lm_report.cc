#include "lm_report.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lm_weights.h"
#include "weft/detail/progress.h"

namespace weft::tools {

namespace {

// Rounds a measurement to significant decimals.
double digits(double x, int decimals) {
  const double scale = std::pow(10, decimals);
  return std::round(x * scale) / scale;
}

double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const std::size_t half = numbers.size() / 2;
  return numbers.size() % 2 == 1 ? numbers[half] : (numbers[half - 1] + numbers[half]) / 2;
}

// The keys of the peers for GPUs.
void add_keys_of_cards(const LmReport& r, nlohmann::ordered_json& all) {
  constexpr double kDataSheet = 989e12;  // bf16 products of an H100 or H200
  const double step = r.step_seconds(), tokens = static_cast<double>(r.sizes.at("batch") * r.sizes.at("length"));
  const double causal = r.causal_gflop() * 1e9 / step, full = lm_gflop(r.sizes) * 1e9 / step;
  double sum = 0;
  for (const double seconds : r.seconds) sum += seconds;
  all["variant"] = r.device + "/" + r.dtype;
  all["B"] = r.sizes.at("batch");
  all["S"] = r.sizes.at("length");
  all["ms"] = digits(step * 1e3, 3);
  all["ms_mean"] = digits(sum * 1e3 / static_cast<double>(r.seconds.size()), 3);
  all["tok_s"] = std::llround(tokens / step);
  all["tflops_causal"] = digits(causal * 1e-12, 4);
  if (r.product_flops > 0) {
    all["gemm_tflops"] = digits(r.product_flops * 1e-12, 4);
    all["mfu_causal_meas"] = digits(causal / r.product_flops, 4);
    all["mfu_full_meas"] = digits(full / r.product_flops, 4);
  }
  if (r.device == device::cuda().name) {
    all["mfu_causal_989"] = digits(causal / kDataSheet, 4);
    all["mfu_full_989"] = digits(full / kDataSheet, 4);
  }
  all["peak_gib"] = digits(static_cast<double>(r.processors * r.planned.sum()) / (1 << 30), 3);
  all["loss0"] = digits(r.losses.front(), 4);
}

}  // namespace

double LmReport::step_seconds() const { return median(seconds); }

double LmReport::causal_gflop() const { return lm_gflop(sizes) - lm_attention_gflop(sizes) / 2; }

std::string LmReport::json() const {
  const double ms = step_seconds() * 1e3, gflop = lm_gflop(sizes);
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  const double tokens = static_cast<double>(sizes.at("batch") * sizes.at("length"));
  nlohmann::ordered_json all;
  all["system"] = "weft";
  all["config"] = config;
  all["mesh"] = mesh;
  all["layout"] = layout;
  all["ms_per_step"] = digits(ms, 3);
  all["ms_min"] = digits(*least * 1e3, 3);
  all["ms_max"] = digits(*most * 1e3, 3);
  all["cpu_ms_per_step"] = digits(cpu_s * 1e3 / static_cast<double>(seconds.size()), 3);
  all["steps"] = seconds.size();
  all["tokens_per_s"] = digits(tokens / ms * 1e3, 1);
  all["peak_rss_mb"] = digits(static_cast<double>(peak_bytes) / (1 << 20), 1);
  all["variable_bytes"] = planned.variables;
  all["arena_bytes"] = planned.arena;
  all["workspace_bytes"] = planned.workspaces;
  all["scratch_bytes"] = planned.scratch;
  if (plan_is_resident()) {
    all["unplanned_bytes"] = unplanned_bytes();
    all["unplanned_limit_bytes"] = (wire == "mpi" ? processors : 1) * kMostUnplannedBytes;
  }
  all["loss_first"] = losses.front();
  all["loss_last"] = losses.back();
  if (predicted_s > 0) {
    all["predicted_ms"] = digits(predicted_s * 1e3, 3);
    all["predicted_bytes"] = predicted_bytes;
  }
  all["setup_s"] = digits(setup_s, 3);
  all["first_loss_s"] = digits(first_loss_s, 3);
  all["weights_s"] = digits(weights_s, 3);
  all["losses10"] =
      std::vector<double>(losses.begin(), losses.begin() + std::min<std::ptrdiff_t>(10, std::ssize(losses)));
  all["compile_s"] = digits(plan_s + bind_s, 4);
  all["plan_s"] = digits(plan_s, 4);
  all["bind_s"] = digits(bind_s, 4);
  all["gflop_per_step"] = digits(gflop, 4);
  all["gflops"] = digits(gflop / ms * 1e3, 1);
  all["work_ratio"] = digits(work_ratio, 4);
  all["processors"] = processors;
  all["wire"] = wire;
  all["device"] = device;
  all["dtype"] = dtype;
  all["optimizer"] = optimizer;
  all["store"] = {{"layout", store}, {"level", store_level}};
  all["sizes"] = sizes;
  add_keys_of_cards(*this, all);
  return all.dump();
}

std::string LmReport::table() const {
  const double step = step_seconds(), gflop = lm_gflop(sizes);
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  const double tokens = static_cast<double>(sizes.at("batch") * sizes.at("length"));
  std::ostringstream out;
  out << "lm " << config << ", " << (mesh.empty() ? "one processor" : "mesh " + mesh + ", layout \"" + layout + "\"")
      << ", " << dtype << ", " << optimizer << ", device " << device << ", wire " << wire << "\n"
      << "  step      " << seconds_text(step) << " (median of " << seconds.size() << "; " << seconds_text(*least)
      << " to " << seconds_text(*most) << "), " << std::fixed << std::setprecision(0) << tokens / step << " tokens/s\n"
      << std::setprecision(1) << "  products  " << gflop / step << " GFLOP/s (" << std::setprecision(3) << gflop
      << " GFLOP a step)\n"
      << std::setprecision(1) << "  memory    " << static_cast<double>(peak_bytes) / (1 << 20)
      << " MiB resident at most";
  if (plan_is_resident()) out << ", " << static_cast<double>(unplanned_bytes()) / (1 << 20) << " MiB of it not planned";
  out << "\n"
      << "  planned   " << bytes_text(planned.variables) << " of variables, " << bytes_text(planned.arena)
      << " of arena (workspaces " << bytes_text(planned.workspaces) << " of it), " << bytes_text(planned.scratch)
      << " of scratch on each processor\n"
      << std::setprecision(3) << "  set-up    " << setup_s << " s to the end of step 1; of it " << plan_s
      << " s to the plan, then " << bind_s << " s to bound kernels\n"
      << std::setprecision(6) << "  loss      " << losses.front() << " at first, " << losses.back() << " after "
      << losses.size() << " steps\n";
  if (product_flops > 0)
    out << std::setprecision(1) << "  roof      " << 100 * causal_gflop() * 1e9 / step / product_flops
        << " % of a large product's " << product_flops * 1e-9 << " GFLOP/s, with half of the attention counted\n";
  if (processors > 1)
    out << std::setprecision(3) << "  work      " << work_ratio << " x that of one processor, in all\n";
  return out.str();
}

}  // namespace weft::tools

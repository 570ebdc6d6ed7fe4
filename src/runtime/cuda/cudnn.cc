// Plans of cuDNN's frontend, a library of headers that takes long to compile: nothing else includes them.
#include "runtime/cuda/cudnn.h"

#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <map>
#include <mutex>

#include "base/str.h"
#include "runtime/cuda/card.h"
#include "weft/error.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // the frontend finds all functions of the library in it
}

namespace weft::cuda {

namespace {

namespace fe = cudnn_frontend;
namespace graph = cudnn_frontend::graph;
using Tensor = std::shared_ptr<graph::Tensor_attributes>;

class Plan : public SdpaPlan {
 public:
  Plan(const Sdpa& sdpa, cudnnHandle_t handle, std::mutex& mutex) : sdpa_(sdpa), handle_(handle), mutex_(mutex) {
    const fe::DataType_t type = sdpa.dtype == DType::kF16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16;
    graph_.set_io_data_type(type)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    if (sdpa.back) backward();
    else forward();
    accept(graph_.validate(), "operands");
    accept(graph_.build_operation_graph(handle), "operation");
    accept(graph_.create_execution_plans({fe::HeurMode_t::A}), "proposals");
    accept(graph_.check_support(), "support");
    fe::error_t built = {fe::error_code_t::GRAPH_NOT_SUPPORTED, "there are fewer proposals"};
    for (index_ = sdpa.proposal; index_ < proposals(); ++index_)
      if (built = graph_.build_plan_at_index(index_); built.is_good()) break;
    accept(built, "plan");
    accept(graph_.get_workspace_size_plan_at_index(index_, workspace_bytes_), "workspace");
  }

  std::int64_t workspace_bytes() const override { return workspace_bytes_; }
  int proposals() const override { return static_cast<int>(graph_.get_execution_plan_count()); }
  bool takes_lengths() const override { return takes_lengths_; }

  void run(const std::unordered_map<SdpaRole, void*>& places, void* workspace, cudaStream_t stream) const override {
    std::unordered_map<std::int64_t, void*> pack;
    for (const auto& [role, place] : places) pack[uid(role)] = place;
    const std::lock_guard lock(mutex_);
    if (fe::detail::set_stream(handle_, stream) != CUDNN_STATUS_SUCCESS) fail("cudnnSetStream failed");
    fe::error_t status = graph_.execute_plan_at_index(handle_, pack, workspace, index_);
    if (status.is_bad()) fail(status.get_message());
  }

 private:
  static std::int64_t uid(SdpaRole role) { return 1 + static_cast<std::int64_t>(role); }

  [[noreturn]] static void fail(const std::string& why) {
    throw RunError({.code = "cuda.attention-failed",
                    .what = str("cuDNN's attention failed: ", why),
                    .where = "device cuda",
                    .fix = "see `weft doctor` for the version of cuDNN"});
  }
  // Before anything runs: the caller takes what is thrown for a refusal.
  static void accept(fe::error_t status, const char* what) {
    if (status.is_bad()) throw std::runtime_error(str(what, ": ", status.get_message()));
  }

  bool is_of_memory(SdpaRole role) const {
    return role == SdpaRole::kK || role == SdpaRole::kV || role == SdpaRole::kDk || role == SdpaRole::kDv;
  }
  std::vector<std::int64_t> dims(SdpaRole role) const {
    const bool key = role == SdpaRole::kQ || role == SdpaRole::kK || role == SdpaRole::kDq || role == SdpaRole::kDk;
    const std::int64_t depth = key ? sdpa_.key : sdpa_.value;
    if (is_of_memory(role)) return {sdpa_.batch, sdpa_.memory_heads, sdpa_.memory, depth};
    return {sdpa_.batch, sdpa_.heads, sdpa_.length, depth};
  }
  std::vector<std::int64_t> strides(SdpaRole role) const {
    const Sdpa::Strides& s = sdpa_.strides[static_cast<std::size_t>(role)];
    return {s[0], s[1], s[2], 1};
  }

  Tensor operand(SdpaRole role, const char* name) {
    return graph_.tensor(
        graph::Tensor_attributes().set_name(name).set_uid(uid(role)).set_dim(dims(role)).set_stride(strides(role)));
  }
  void result(const Tensor& tensor, SdpaRole role) const {
    tensor->set_output(true).set_uid(uid(role)).set_dim(dims(role)).set_stride(strides(role));
  }
  void place_sums(graph::Tensor_attributes& sums) const {
    sums.set_uid(uid(SdpaRole::kSums))
        .set_dim({sdpa_.batch, sdpa_.heads, sdpa_.length, 1})
        .set_stride({sdpa_.heads * sdpa_.length, sdpa_.length, 1, 1})
        .set_data_type(fe::DataType_t::FLOAT);
  }

  template <class Attributes>
  void describe(Attributes& attributes) const {
    attributes.set_attn_scale(static_cast<float>(sdpa_.scale));
    if (sdpa_.causal)
      attributes.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
  }

  void forward() {
    auto attributes = graph::SDPA_attributes().set_name("attend").set_generate_stats(true);
    describe(attributes);
    const auto [y, sums] =
        graph_.sdpa(operand(SdpaRole::kQ, "q"), operand(SdpaRole::kK, "k"), operand(SdpaRole::kV, "v"), attributes);
    result(y, SdpaRole::kY);
    sums->set_output(true);
    place_sums(*sums);
  }

  void backward() {
    auto attributes =
        graph::SDPA_backward_attributes().set_name("attend_back").set_deterministic_algorithm(sdpa_.deterministic);
    describe(attributes);
    // The frontend would pad such a memory itself, by a copy from the host that cannot be captured.
    takes_lengths_ = sdpa_.memory % 128 != 0 && fe::detail::get_backend_version() <= 91500;
    if (takes_lengths_)
      attributes.set_padding_mask(true)
          .set_seq_len_q(lengths(SdpaRole::kLengths, "lengths"))
          .set_seq_len_kv(lengths(SdpaRole::kMemoryLengths, "memory_lengths"));
    graph::Tensor_attributes sums;
    place_sums(sums.set_name("sums"));
    const auto [dq, dk, dv] =
        graph_.sdpa_backward(operand(SdpaRole::kQ, "q"), operand(SdpaRole::kK, "k"), operand(SdpaRole::kV, "v"),
                             operand(SdpaRole::kY, "y"), operand(SdpaRole::kDy, "dy"), graph_.tensor(sums), attributes);
    result(dq, SdpaRole::kDq);
    result(dk, SdpaRole::kDk);
    result(dv, SdpaRole::kDv);
  }

  Tensor lengths(SdpaRole role, const char* name) {
    return graph_.tensor(graph::Tensor_attributes()
                             .set_name(name)
                             .set_uid(uid(role))
                             .set_dim({sdpa_.batch, 1, 1, 1})
                             .set_stride({1, 1, 1, 1})
                             .set_data_type(fe::DataType_t::INT32));
  }

  const Sdpa sdpa_;
  const cudnnHandle_t handle_;
  std::mutex& mutex_;  // of the handle
  graph::Graph graph_;
  std::int64_t index_ = 0;  // of the proposal that it runs
  std::int64_t workspace_bytes_ = 0;
  bool takes_lengths_ = false;
};

// The library, and all plans of this process. It stays to the process's end.
class Cudnn {
 public:
  Cudnn() {
    void* library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char* why = dlerror();
      text_ = str("no cuDNN (", why ? why : "libcudnn.so.9 cannot be opened", ")");
      return;
    }
    fe::cudnn_dlhandle = library;
    text_ = str("cuDNN ", fe::detail::get_backend_version_string());
    is_open_ = true;
  }

  const std::string& text() const { return text_; }
  bool is_open() const { return is_open_; }

  // A plan, or why there is none.
  struct Entry {
    std::unique_ptr<Plan> plan;
    std::string refusal;
  };
  const Entry& entry(const Sdpa& sdpa) {
    const std::lock_guard lock(mutex_);
    int card = 0;
    check(cudaGetDevice(&card), "cudaGetDevice");
    const auto [found, is_new] = entries_.try_emplace({card, sdpa});
    Entry& entry = found->second;
    if (!is_new) return entry;
    try {
      entry.plan = std::make_unique<Plan>(sdpa, handle(card), mutex_);
    } catch (const std::exception& error) {
      entry.refusal = error.what();
    }
    return entry;
  }

 private:
  cudnnHandle_t handle(int card) {
    if (!is_open_) throw std::runtime_error(text_);
    cudnnHandle_t& handle = handles_[card];
    if (!handle && fe::detail::create_handle(&handle) != CUDNN_STATUS_SUCCESS) {
      handle = nullptr;
      throw std::runtime_error("cudnnCreate failed");
    }
    return handle;
  }

  bool is_open_ = false;
  std::string text_;
  std::mutex mutex_;
  std::map<int, cudnnHandle_t> handles_;
  std::map<std::pair<int, Sdpa>, Entry> entries_;
};

Cudnn& cudnn() {
  static auto* the = new Cudnn;
  return *the;
}

}  // namespace

const SdpaPlan* sdpa_plan(const Sdpa& sdpa) { return cudnn().entry(sdpa).plan.get(); }
std::string sdpa_refusal(const Sdpa& sdpa) { return cudnn().entry(sdpa).refusal; }
std::string describe_cudnn() { return cudnn().text(); }
bool has_cudnn() { return cudnn().is_open(); }

}  // namespace weft::cuda

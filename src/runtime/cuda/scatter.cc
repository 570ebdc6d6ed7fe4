// scatter_add. Every result is summed by one thread in the order of the updates, so the bits are the same in every run.
#include "base/index.h"
#include "base/str.h"
#include "runtime/cuda/instructions.h"
#include "runtime/cuda/text.h"
#include "runtime/host/strided.h"
#include "runtime/host/views.h"

namespace weft::cuda {

namespace {

constexpr std::int64_t kFewUpdates = 32;                // updates of one result that a thread walks over
constexpr int kScatterThreads = 128, kMostEach = 8;         // inner elements of a thread in one round
constexpr int kListed = 1024;                    // updates of one index whose order fits in shared memory
constexpr int kPlaceThreads = 256, kIdsEach = 256;

// The roles of the dims: `own` of the result that the indices have too, `inner` of the result alone, `summed` absent from
// the result.
struct ScatterDims {
  Shape own, inner, summed;
  ScatterDims(const Shape& indices, const Shape& updates, const Shape& result, const std::string& dim) {
    for (const Dim& d : result) {
      if (d.name == dim) continue;
      Shape& role = indices.has(d.name) ? own : inner;
      role = role.plus({d});
    }
    for (const Dim& d : updates.plus(indices))
      if (!result.has(d.name)) summed = summed.plus({d});
  }
};

// The lists of updates by index: how many there are of each and in all, where the list of each begins, how much of it is
// filled, and the lists.
std::int64_t lists_bytes(std::int64_t lists, std::int64_t updates) {
  return card_aligned((lists + 1) * 4) + 2 * card_aligned(lists * 4) + card_aligned(updates * 4);
}

bool has_lists(std::int64_t own, std::int64_t size, std::int64_t many) {
  return many > kFewUpdates && own * size < (std::int64_t{1} << 30) && own * many < (std::int64_t{1} << 30);
}

class Scatter {
 public:
  explicit Scatter(const Work& work)
      : work_(work),
        dim_(work.instr.as<ScatterAdd>()->dim),
        dims_(indices().shape, updates().shape, result().shape, dim_),
        own_(dims_.own.elements()),
        inner_(dims_.inner.elements()),
        many_(dims_.summed.elements()),
        size_(result().shape.size_of(dim_)),
        own_runs_(runs(dims_.own)),
        inner_runs_(runs(dims_.inner)),
        sum_runs_(runs(dims_.summed)) {}

  void run() const {
    if (has_lists(own_, size_, many_)) by_lists();
    else by_elements();
  }

 private:
  const TensorView& indices() const { return work_.inputs[0]; }
  const TensorView& updates() const { return work_.inputs[1]; }
  const TensorView& result() const { return work_.outputs[0]; }
  std::string wide() const { return wide_type(result().dtype); }

  std::vector<Run> runs(const Shape& shape) const {
    const TensorView& y = result();
    const TensorView line = y.shape.has(dim_) ? without_dim(y, dim_) : y;
    return joined_runs({shape.begin(), shape.end()},
                       {strides_along(indices(), shape), strides_along(updates(), shape), strides_along(line, shape)});
  }

  std::vector<Param> params() const {
    return {in(indices().dtype, "indices", indices().data), in(updates().dtype, "updates", updates().data),
            out(result().dtype, "y", result().data),
            number("begin", result().begin[result().shape.position(dim_)])};
  }
  std::string id(const std::string& b, const std::string& s) const {
    return str("(widen(get(indices[", offset_text(own_runs_, 0, b), " + ", offset_text(sum_runs_, 0, s), "])) - begin)");
  }
  std::string update(const std::string& b, const std::string& e, const std::string& s) const {
    return str(offset_text(own_runs_, 1, b), " + ", offset_text(inner_runs_, 1, e), " + ", offset_text(sum_runs_, 1, s));
  }
  std::string write(const std::string& v, const std::string& b, const std::string& e) const {
    const std::string type = stored_type(result().dtype);
    return str("y[", v, " * ", result().strides[result().shape.position(dim_)], "ll + ", offset_text(own_runs_, 2, b),
               " + ", offset_text(inner_runs_, 2, e), "] = put<", type, ">(narrow<", type, ">(sum));\n");
  }
  std::string add() const {
    return is_float(result().dtype)
               ? "sum += widen(get(updates[at]));\n"
               : "sum = (long long)((unsigned long long)sum + (unsigned long long)widen(get(updates[at])));\n";
  }

  // A thread for each result looks at all updates.
  void by_elements() const {
    launch_per_element(work_, own_ * inner_ * size_, params(),
                       str("const long long e = i % ", inner_, "ll, v = i / ", inner_, "ll % ", size_, "ll, b = i / ",
                           inner_ * size_, "ll;\n", wide(), " sum = 0;\nfor (long long s = 0; s < ", many_,
                           "ll; ++s) {\nif (", id("b", "s"), " != v) continue;\nconst long long at = ",
                           update("b", "e", "s"), ";\n", add(), "}\n", write("v", "b", "e")));
  }

  // Counts the updates of each index, gives each index a list, fills the lists in any order, and sums each list in
  // the order of the updates. Integer atomics: what they leave is sorted before it counts.
  void by_lists() const {
    const std::int64_t lists = own_ * size_, all = own_ * many_;
    const auto piece = [&](std::int64_t count) { return work_.workspace(static_cast<std::size_t>(count) * 4); };
    const Param counts = typed("int", "counts", piece(lists + 1)), firsts = typed("int", "firsts", piece(lists)),
                filled = typed("int", "filled", piece(lists)), places = typed("int", "places", piece(all));
    const std::string each = str("const long long b = i / ", many_, "ll, s = i % ", many_, "ll, v = ", id("b", "s"),
                                 ";\nif (v < 0 || v >= ", size_, "ll) return;\nconst long long list = b * ", size_,
                                 "ll + v;\n");
    launch_per_element(work_, lists + 1, {counts}, "counts[i] = 0;\n");
    launch_per_element(work_, all, with({counts}), str(each, "atomicAdd(counts + list, 1);\n"));
    give_places(lists, {counts, firsts, filled});
    launch_per_element(work_, all, with({firsts, filled, places}),
                       str(each, "places[firsts[list] + atomicAdd(filled + list, 1)] = (int)s;\n"));
    sum_lists(lists, with({counts, firsts, places}));
  }

  std::vector<Param> with(const std::vector<Param>& more) const {
    std::vector<Param> all = params();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  // firsts[l]: where list l begins. The lists of a warp lie side by side; warps come in any order.
  void give_places(std::int64_t lists, const std::vector<Param>& params) const {
    work_.launch(divided_up(lists, kPlaceThreads), kPlaceThreads, params,
                 str("const int l = blockIdx.x * ", kPlaceThreads, " + threadIdx.x, lane = threadIdx.x % 32;\n",
                     "const int own = l < ", lists, " ? counts[l] : 0;\nint upto = own;\nfor (int o = 1; o < 32; o *= 2) {\n"
                     "const int before = __shfl_up_sync(0xffffffffu, upto, o);\nif (lane >= o) upto += before;\n}\n"
                     "int base = lane == 31 ? atomicAdd(counts + ",
                     lists, ", upto) : 0;\nbase = __shfl_sync(0xffffffffu, base, 31);\nif (l < ", lists,
                     ") { firsts[l] = base + upto - own; filled[l] = 0; }\n"));
  }

  // A block for each list. One that is too long for shared memory is found again among all updates, in their order.
  void sum_lists(std::int64_t lists, const std::vector<Param>& params) const {
    const std::string add_one = str("const long long base = ", offset_text(own_runs_, 1, "b"), " + ",
                                    offset_text(sum_runs_, 1, "s"), ";\n#pragma unroll\nfor (int j = 0; j < ", kMostEach,
                                    "; ++j) {\nconst long long e = first + j * ", kScatterThreads, " + threadIdx.x;\nif (e >= ",
                                    inner_, "ll) break;\nconst long long at = base + ", offset_text(inner_runs_, 1, "e"),
                                    ";\n", wide(), "& sum = sums[j];\n", add(), "}\n");
    work_.launch(
        lists, kScatterThreads, params,
        str("__shared__ int found[", kListed, "], sorted[", kListed, "];\nconst long long v = blockIdx.x % ", size_,
            "ll, b = blockIdx.x / ", size_, "ll;\nconst int from = firsts[blockIdx.x], count = counts[blockIdx.x];\nconst bool listed = count <= ",
            kListed, ";\nif (listed) {\nfor (int f = threadIdx.x; f < count; f += ", kScatterThreads,
            ") found[f] = places[from + f];\n__syncthreads();\nfor (int f = threadIdx.x; f < count; f += ", kScatterThreads,
            ") {\nint rank = 0;\nfor (int g = 0; g < count; ++g) rank += found[g] < found[f];\nsorted[rank] = found[f];\n}\n"
            "__syncthreads();\n}\nfor (long long first = 0; first < ",
            inner_, "ll; first += ", kScatterThreads * kMostEach, ") {\n", wide(), " sums[", kMostEach, "];\nfor (int j = 0; j < ", kMostEach,
            "; ++j) sums[j] = 0;\nif (listed) {\nfor (int f = 0; f < count; ++f) {\nconst long long s = sorted[f];\n",
            add_one, "}\n} else {\nfor (long long s0 = 0; s0 < ", many_, "ll; s0 += ", kIdsEach,
            ") {\n__syncthreads();\nfor (int k = threadIdx.x; k < ", kIdsEach, "; k += ", kScatterThreads,
            ") { const long long q = s0 + k; found[k] = q < ", many_, "ll && ", id("b", "q"),
            " == v; }\n__syncthreads();\nfor (int k = 0; k < ", kIdsEach,
            "; ++k) {\nif (!found[k]) continue;\nconst long long s = s0 + k;\n", add_one,
            "}\n}\n}\nfor (int j = 0; j < ", kMostEach, "; ++j) {\nconst long long e = first + j * ", kScatterThreads,
            " + threadIdx.x;\nif (e >= ", inner_, "ll) break;\nconst ", wide(), " sum = sums[j];\n", write("v", "b", "e"),
            "}\n}\n"));
  }

  const Work& work_;
  const std::string& dim_;
  const ScatterDims dims_;
  const std::int64_t own_, inner_, many_, size_;
  const std::vector<Run> own_runs_, inner_runs_, sum_runs_;
};

}  // namespace

void scatter_add(const Work& work) { Scatter(work).run(); }

std::int64_t scatter_bytes(const Program& program, const Instr& instr) {
  const Shape& result = program.values[instr.outputs[0]].shape;
  const std::string& dim = instr.as<ScatterAdd>()->dim;
  const ScatterDims dims(program.values[instr.inputs[0]].shape, program.values[instr.inputs[1]].shape, result, dim);
  const std::int64_t own = dims.own.elements(), size = result.size_of(dim), many = dims.summed.elements();
  return has_lists(own, size, many) ? lists_bytes(own * size, own * many) : 0;
}

}  // namespace weft::cuda

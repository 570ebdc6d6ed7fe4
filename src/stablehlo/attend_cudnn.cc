// attend and attend_back as cuDNN's fused attention, which XLA's compiler for CUDA calls by the names and descriptions below.
//
// The call gives the logarithm of a row's sum of e^score where attend has the total of e^(score - largest score). So both
// instructions of a pair are written in this form, or neither.
#include <algorithm>
#include <array>
#include <charconv>

#include "base/index.h"
#include "base/str.h"
#include "program/attend.h"
#include "stablehlo/block.h"

namespace weft::stablehlo {

namespace {

bool is_fitting(const Block& block, const Instr& instr) {
  const AttendRules& rules = *attend_rules(instr);
  if (rules.biased || rules.segments || rules.bounded || !rules.sources.empty() || rules.length.empty()) return false;
  const Value& q = block.value(instr.inputs[0]);
  const Shape &k = block.value(instr.inputs[1]).shape, &v = block.value(instr.inputs[2]).shape;
  if (q.dtype != DType::kBF16 && q.dtype != DType::kF16) return false;
  const AttendDims dims = attend_dims(rules, q.shape, k);
  if (dims.rows.rank() != 1 || !dims.rows.has(rules.length) || k.rank() != q.shape.rank()) return false;
  const std::int64_t key = q.shape.size_of(rules.key), length = dims.rows[0].size, memory = k.size_of(rules.memory);
  // A query's position counts from the beginning of its shard.
  const bool is_whole = block.program.mesh.size(q.sharding.dims[q.shape.position(rules.length)]) == 1;
  return key == v.size_of(rules.value) && key % 8 == 0 && key <= 128 && length > 1 && memory > 1 &&
         (!rules.causal || (is_whole && length == memory));
}

// Whether the instruction that makes this total and all that read it fit.
bool is_pair(const Block& block, ValueId total) {
  for (const ProgramOutput& output : block.program.outputs)
    if (output.value == total) return false;
  bool is_made_here = false;
  for (const Instr& instr : block.program.body) {
    const bool makes = instr.is<Attend>() && instr.outputs[1] == total;
    const bool reads = std::find(instr.inputs.begin(), instr.inputs.end(), total) != instr.inputs.end();
    if (reads && !instr.is<AttendBack>()) return false;
    if ((makes || reads) && !is_fitting(block, instr)) return false;
    is_made_here = is_made_here || makes;
  }
  return is_made_here;
}

// A product of two operands: the position of the summed dim in each, and the positions of batch and heads.
struct Product {
  const char* name;
  std::array<int, 2> summed;
  std::array<std::array<int, 2>, 2> shared;
};

std::string text_of(const Product& product) {
  const auto numbers = [](const auto& all) { return str("[\"", join(all, "\", \""), "\"]"); };
  return str("\"", product.name, "\": {\"lhs_contracting_dimensions\": [\"", product.summed[0],
             "\"], \"rhs_contracting_dimensions\": [\"", product.summed[1],
             "\"], \"lhs_batch_dimensions\": ", numbers(product.shared[0]),
             ", \"rhs_batch_dimensions\": ", numbers(product.shared[1]), "}");
}

std::string exact(double number) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr};
}

// One instruction. q lies as [batch length heads key], or as [batch heads length key] where no dim follows the length.
class Call {
 public:
  Call(Block& block, const Instr& instr) : block_(block), w_(block.w), instr_(instr), rules_(*attend_rules(instr)) {
    const Value& q = block.value(instr.inputs[0]);
    Shape* side = &batch_;
    for (const Dim& dim : q.shape) {
      if (dim.name == rules_.length) side = &heads_;
      else if (dim.name != rules_.key) *side = side->plus({dim});
    }
    heads_first_ = heads_.empty();
    if (heads_first_ && !batch_.empty()) {
      heads_ = {batch_[batch_.rank() - 1]};
      batch_ = batch_.minus(heads_);
    }
    length_ = q.shape.dim(rules_.length);
    memory_ = block.value(instr.inputs[1]).shape.dim(rules_.memory);
    key_ = q.shape.dim(rules_.key);
    element_ = element_of(q.dtype);
  }

  void write_forward() {
    const Terms made =
        w_.library_call("__cudnn$fmhaSoftmax", {operand(0, length_), operand(1, memory_), operand(2, memory_)},
                        description(forward_products()), {{"", element_, result(length_)}, {"", "f32", statistics()}},
                        {order(), {2, 1, 0}});
    define(instr_.outputs[0], w_.rename(laid(made[0], length_), rules_.key, rules_.value));
    const Term of_rows = w_.reshape(made[1], batch_.plus(heads_).plus({length_}));
    define(instr_.outputs[1], of_rows);
  }

  void write_backward(const AttendBack& operation) {
    const AttendOperands roles = attend_operands(instr_);
    const Term total = w_.reshape(
        w_.transpose(block_.term(instr_.inputs[at(roles.total)]), batch_.plus(heads_).plus({length_})), statistics());
    const Terms made = w_.library_call(
        "__cudnn$fmhaSoftmaxBackward",
        {operand(0, length_), operand(1, memory_), operand(2, memory_), total, operand(roles.dy, length_),
         operand(roles.y, length_)},
        description(backward_products()),
        {{"", element_, result(length_)}, {"", element_, result(memory_)}, {"", element_, result(memory_)}},
        {order(), order(), order()});
    define_derivatives(
        block_, instr_, operation,
        {laid(made[0], length_), laid(made[1], memory_), w_.rename(laid(made[2], memory_), rules_.key, rules_.value)});
  }

 private:
  void define(ValueId id, const Term& x) { block_.define(id, w_.transpose(x, block_.value(id).shape)); }

  // q, k, v, y and dy by their place, with the dims that cuDNN sees.
  Shape named(const Dim& along) const {
    return heads_first_ ? batch_.plus(heads_).plus({along, key_}) : batch_.plus({along}).plus(heads_).plus({key_});
  }
  Shape seen(const Dim& along) const {
    const Dim batch{"batch", batch_.elements()}, heads{"heads", heads_.elements()}, rows{"rows", along.size},
        key{"key", key_.size};
    return heads_first_ ? Shape{batch, heads, rows, key} : Shape{batch, rows, heads, key};
  }
  Term operand(int place, const Dim& along) {
    Term x = block_.term(instr_.inputs[at(place)]);
    if (!x.shape.has(rules_.key)) x = w_.rename(x, rules_.value, rules_.key);
    return w_.reshape(w_.transpose(x, named(along)), seen(along));
  }

  // Results have heads before rows to XLA, whatever their order in memory.
  Shape result(const Dim& along) const {
    return {{"batch", batch_.elements()}, {"heads", heads_.elements()}, {"rows", along.size}, {"key", key_.size}};
  }
  Shape statistics() const { return result(length_).minus({{"key", 1}}); }
  Sizes order() const { return heads_first_ ? Sizes{3, 2, 1, 0} : Sizes{3, 1, 2, 0}; }
  Term laid(const Term& x, const Dim& along) { return w_.reshape(w_.transpose(x, seen(along)), named(along)); }

  std::vector<Product> forward_products() const {
    const std::array own = places();
    return {{"bmm1_dot_dimension_numbers", {3, 3}, {own, own}},
            {"bmm2_dot_dimension_numbers", {3, rows()}, {kScores, own}}};
  }
  std::vector<Product> backward_products() const {
    const std::array own = places();
    return {{"bmm1_grad_gemm1_dot_dimension_numbers", {2, rows()}, {kScores, own}},
            {"bmm1_grad_gemm2_dot_dimension_numbers", {3, rows()}, {kScores, own}},
            {"bmm2_grad_gemm1_dot_dimension_numbers", {2, rows()}, {kScores, own}},
            {"bmm2_grad_gemm2_dot_dimension_numbers", {3, 3}, {own, own}}};
  }
  static constexpr std::array<int, 2> kScores = {0, 1};  // batch and heads of the scores
  std::array<int, 2> places() const { return {0, heads_first_ ? 1 : 2}; }
  int rows() const { return heads_first_ ? 2 : 1; }

  // A ProtoBuf message in its JSON form: numbers of 64 bits are texts. XLA replaces the algorithm by its own choice.
  std::string description(const std::vector<Product>& products) const {
    std::vector<std::string> sizes, texts;
    for (const std::int64_t size : {batch_.elements(), heads_.elements(), length_.size, memory_.size})
      sizes.push_back(str("\"", size, "\""));
    for (const Product& product : products) texts.push_back(text_of(product));
    return str(R"({"operation_queue_id": "0", "cudnn_fmha_backend_config": {"algorithm": {"algo_id": "0", )",
               R"("math_type": "TENSOR_OP_MATH", "tuning_knobs": {"17": "1", "24": "0"}, "is_cudnn_frontend": true, )",
               R"("workspace_size": "0"}, "fmha_scale": )", exact(rules_.scale),
               R"(, "intermediate_tensor_shape": {"element_type": ")", element_ == "bf16" ? "BF16" : "F16",
               R"(", "dimensions": [)", join(sizes, ", "), R"(], "layout": {"minor_to_major": ["3", "2", "1", "0"]}, )",
               R"("is_dynamic_dimension": [false, false, false, false]}, "is_flash_attention": true, "mask_type": ")",
               rules_.causal ? "CAUSAL" : "NO_MASK", R"(", )", join(texts, ", "),
               R"(, "dropout_rate": 0.0, "seed": 42, "sliding_window_length": 0, "max_seg_per_batch": 1, )",
               R"("is_paged_attention": false}})");
  }

  Block& block_;
  Writer& w_;
  const Instr& instr_;
  const AttendRules& rules_;
  Shape batch_, heads_;
  bool heads_first_ = false;
  Dim length_, memory_, key_;
  Element element_;
};

}  // namespace

bool write_cudnn_attend(Block& block, const Instr& instr) {
  if (block.state.options.platform != Platform::kCuda || !is_pair(block, instr.outputs[1])) return false;
  Call(block, instr).write_forward();
  return true;
}

bool write_cudnn_attend_back(Block& block, const Instr& instr, const AttendBack& operation) {
  if (block.state.options.platform != Platform::kCuda ||
      !is_pair(block, instr.inputs[at(attend_operands(instr).total)]))
    return false;
  Call(block, instr).write_backward(operation);
  return true;
}

}  // namespace weft::stablehlo

#include <algorithm>
#include <map>

#include "base/index.h"
#include "language/shape_math.h"
#include "program/matrix_form.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

namespace weft {

namespace {

constexpr const char* kDim = "siblings";  // along which the slices lie in the joined operand and in the result

// A contraction with a slice of something.
struct Sibling {
  int position = 0;        // of the contraction
  std::size_t sliced = 0;  // which operand
  int slice = 0;           // position of the view
};

class SiblingJoiner {
 public:
  explicit SiblingJoiner(Program& program)
      : p_(program), uses_(program), defined_(definitions_of(program)), strides_(program) {}

  void run() {
    for (std::size_t i = 0; i < p_.body.size(); ++i)
      if (p_.body[i].is<Contract>() && lies_freely(p_, uses_, p_.body[i].outputs[0])) find_family(static_cast<int>(i));
    std::vector<std::vector<Instr>> before(p_.body.size());
    for (std::vector<Sibling>& family : families_) {
      std::ranges::stable_sort(family, {}, [&](const Sibling& s) { return offset(s); });
      if (family.size() > 1 && lie_evenly(family)) join(family, before);
    }
    std::vector<Instr> body;
    body.reserve(p_.body.size());
    for (std::size_t i = 0; i < p_.body.size(); ++i) {
      for (Instr& instr : before[i]) body.push_back(std::move(instr));
      body.push_back(std::move(p_.body[i]));
    }
    p_.body = std::move(body);
  }

 private:
  const Instr& contraction(const Sibling& s) const { return p_.body[at(s.position)]; }
  const View& view(const Sibling& s) const { return *p_.body[at(s.slice)].as<View>(); }
  std::int64_t offset(const Sibling& s) const { return view(s).offset; }
  const Value& value(ValueId id) const { return p_.values[id]; }
  const Value& slice(const Sibling& s) const { return value(contraction(s).inputs[s.sliced]); }
  const Value& made(const Sibling& s) const { return value(contraction(s).outputs[0]); }

  void find_family(int position) {
    for (std::size_t k : {0u, 1u}) {
      const int slice = defined_[p_.body[at(position)].inputs[k]];
      if (slice < 0 || !p_.body[at(slice)].is<View>()) continue;
      const Sibling found{position, k, slice};
      std::vector<std::size_t>& known = by_operands_[{contraction(found).inputs[1 - k], p_.body[at(slice)].inputs[0]}];
      const auto family =
          std::ranges::find_if(known, [&](std::size_t f) { return are_siblings(families_[f][0], found); });
      if (family != known.end()) return families_[*family].push_back(found);
      known.push_back(families_.size());
      families_.push_back({found});
      return;
    }
  }

  // The same operand, slices that look alike of one value, and results that look alike.
  bool are_siblings(const Sibling& a, const Sibling& b) const {
    const auto alike = [](const Value& x, const Value& y) {
      return x.dtype == y.dtype && x.shape == y.shape && x.sharding == y.sharding;
    };
    return a.sliced == b.sliced && contraction(a).inputs[1 - a.sliced] == contraction(b).inputs[1 - b.sliced] &&
           p_.body[at(a.slice)].inputs == p_.body[at(b.slice)].inputs && view(a).strides == view(b).strides &&
           contraction(a).origin.recompute == contraction(b).origin.recompute && alike(slice(a), slice(b)) &&
           alike(made(a), made(b));
  }

  bool lie_evenly(const std::vector<Sibling>& family) const {
    const std::int64_t step = offset(family[1]) - offset(family[0]);
    for (std::size_t i = 1; i < family.size(); ++i)
      if (offset(family[i]) - offset(family[i - 1]) != step) return false;
    return step > 0;
  }

  // A value's type with the new dim before the first one that `other` lacks; nothing if there is none.
  std::optional<ValueType> widened(const Value& value, const Value& other, std::int64_t siblings) const {
    if (value.shape.has(kDim) || other.shape.has(kDim)) return std::nullopt;
    std::vector<Dim> dims = value.shape.dims();
    const auto own = std::ranges::find_if(dims, [&](const Dim& dim) { return !other.shape.has(dim.name); });
    if (own == dims.end()) return std::nullopt;
    const auto place = own - dims.begin();
    ValueType type{value.dtype, {}, value.sharding};
    dims.insert(own, {kDim, siblings});
    type.sharding.dims.insert(type.sharding.dims.begin() + place, Axes{});
    type.shape = Shape(std::move(dims));
    return type;
  }

  void join(const std::vector<Sibling>& family, std::vector<std::vector<Instr>>& before) {
    const Sibling& first = family[0];
    const ValueId shared = contraction(first).inputs[1 - first.sliced];
    const auto siblings = static_cast<std::int64_t>(family.size());
    const auto operand = widened(slice(first), value(shared), siblings);
    const auto result = widened(made(first), value(shared), siblings);
    if (!operand || !result) return;
    View all{offset(first), view(first).strides};
    const auto place = static_cast<std::ptrdiff_t>(operand->shape.position(kDim));
    all.strides.insert(all.strides.begin() + place, offset(family[1]) - offset(first));
    if (!pays(first, shared, {operand->shape, all.strides}, result->shape)) return;

    const auto earliest = std::ranges::min_element(family, {}, &Sibling::position);
    std::vector<Instr>& here = before[at(earliest->position)];
    const Origin origin = contraction(*earliest).origin;
    const ValueId weights = add_value(p_, slice(first).name + "/siblings", *operand);
    const ValueId product = add_value(p_, made(first).name + "/siblings", *result);
    here.push_back({all, p_.body[at(first.slice)].inputs, {weights}, origin});
    std::vector<ValueId> operands{shared, shared};
    operands[first.sliced] = weights;
    here.push_back({Contract{}, operands, {product}, origin});
    for (std::size_t i = 0; i < family.size(); ++i) become_view(family[i], product, static_cast<std::int64_t>(i));
  }

  // The joined product is no more products of matrices than one of its members.
  bool pays(const Sibling& s, ValueId shared, const Strided& all, const Shape& result) const {
    const auto form = [&](const Strided& sliced, const Shape& out) {
      const std::vector<std::int64_t> dense = dense_strides(out);
      const std::vector<std::int64_t> lies = strides_.of(shared);
      const Strided other{value(shared).shape, lies};
      return s.sliced == 0 ? matrix_form(sliced, other, {out, dense}) : matrix_form(other, sliced, {out, dense});
    };
    const MatrixForm one = form({slice(s).shape, view(s).strides}, made(s).shape), joined = form(all, result);
    return joined.is_plain() && joined.products() <= one.products();
  }

  // The contraction becomes a view of its part of the product, and so do views of it.
  void become_view(const Sibling& s, ValueId product, std::int64_t index) {
    const Shape& all = value(product).shape;
    std::vector<std::int64_t> strides = dense_strides(all);
    const auto place = static_cast<std::ptrdiff_t>(all.position(kDim));
    const std::int64_t offset = index * strides[at(place)];
    strides.erase(strides.begin() + place);
    Instr& instr = p_.body[at(s.position)];
    const ValueId part = instr.outputs[0];
    for (int user : uses_.users(part))
      if (Instr& seen = p_.body[at(user)]; seen.is<View>())
        seen.operation = *restrided(*seen.as<View>(), value(seen.outputs[0]).shape, value(part).shape, strides);
    instr.operation = View{offset, strides};
    instr.inputs = {product};
  }

  Program& p_;
  Uses uses_;
  ByValue<int> defined_;
  ValueStrides strides_;
  std::vector<std::vector<Sibling>> families_;
  std::map<std::pair<ValueId, ValueId>, std::vector<std::size_t>> by_operands_;  // families, by whom they multiply
};

}  // namespace

Program join_siblings(Program program, const PassOptions&) {
  SiblingJoiner(program).run();
  return program;
}

}  // namespace weft

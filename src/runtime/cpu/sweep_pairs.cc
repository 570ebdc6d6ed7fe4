// Finding steps that run as one pair: the second step is the only reader of the first step's result.
#include <algorithm>
#include <string_view>

#include "base/index.h"
#include "runtime/cpu/sweep.h"

namespace weft::cpu {

namespace {

bool is_f32_function(const Step& step, const std::vector<Term>& terms) {
  return step.kind == Step::Kind::kLoop && step.function && !step.pair && step.extent == Extent::kFull &&
         step.dtype == DType::kF32 && step.lane == Lane::kF32 && terms[at(step.out)].kind == Term::Kind::kApply;
}

// A tile, or one row of columns for all rows; not one number per row.
bool is_tile(int t, const std::vector<Term>& terms) {
  return terms[at(t)].extent == Extent::kFull || terms[at(t)].extent == Extent::kColumn;
}

// The pair of `first` and the function that takes its result as operand `place` of two, or the only one.
std::optional<Pair> pair_of(std::string_view first, std::string_view second, int place) {
  if (first == "multiply" && second == "add") return Pair::kMultiplyAdd;
  if (first == "multiply" && second == "subtract") return place == 0 ? Pair::kMultiplySubtract : Pair::kSubtractProduct;
  if (first == "multiply" && second == "multiply") return Pair::kMultiplyMultiply;
  if (first == "subtract" && second == "multiply") return Pair::kSubtractMultiply;
  if (first == "subtract" && second == "exp") return Pair::kExpOfDifference;
  return {};
}

// `second`, doing the work of `first` too; false if they are no pair.
bool join(const Step& first, Step& second, int place, const std::vector<Term>& terms) {
  const std::optional<Pair> pair = pair_of(first.function->name, second.function->name, place);
  if (!pair) return false;
  int a = first.args[0], b = first.args[1];
  if (!is_tile(a, terms) && first.function->name == "multiply") std::swap(a, b);
  if (!is_tile(a, terms)) return false;
  const int c = second.arity == 2 ? second.args[1 - place] : -1;
  second.pair = pair;
  second.args[0] = a;
  second.args[1] = b;
  second.args[2] = c;
  second.arity = second.arity == 2 ? 3 : 2;
  return true;
}

}  // namespace

void join_pairs(std::vector<Step>& steps, const std::vector<Term>& terms, const std::vector<int>& uses) {
  std::vector<int> made_by(terms.size(), -1);
  std::vector<bool> gone(steps.size(), false);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    Step& step = steps[s];
    if (step.out >= 0) made_by[at(step.out)] = static_cast<int>(s);
    if (!is_f32_function(step, terms)) continue;
    for (int place = 0; place < step.arity; ++place) {
      const int t = step.args[place], maker = made_by[at(t)];
      if (maker < 0 || uses[at(t)] != 1 || !is_f32_function(steps[at(maker)], terms)) continue;
      if (steps[at(maker)].arity != 2 || !join(steps[at(maker)], step, place, terms)) continue;
      gone[at(maker)] = true;
      break;
    }
  }
  std::vector<Step> kept;
  for (std::size_t s = 0; s < steps.size(); ++s)
    if (!gone[s]) kept.push_back(steps[s]);
  steps = std::move(kept);
}

}  // namespace weft::cpu

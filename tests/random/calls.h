// The functions that a recipe's steps call: the tables of calls.cc and calls_regions.cc.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "recipe.h"

namespace weft::random_graphs {

// The arguments of a step, as the calls below take them.
class Args {
 public:
  Args(const Step& step, const Tensors& values) : step_(step), values_(values) {}

  Tensor x(std::size_t i) const { return tensor(get<Ref>(i)); }
  Tensors xs(std::size_t i) const {
    Tensors tensors;
    for (const Ref& ref : get<Refs>(i)) tensors.push_back(tensor(ref));
    return tensors;
  }
  const Dim& dim(std::size_t i) const { return get<Dim>(i); }
  const Shape& shape(std::size_t i) const { return get<Shape>(i); }
  double number(std::size_t i) const { return get<double>(i); }
  int integer(std::size_t i) const { return static_cast<int>(get<std::int64_t>(i)); }
  bool flag(std::size_t i) const { return get<bool>(i); }
  const std::string& text(std::size_t i) const { return get<std::string>(i); }
  DType dtype(std::size_t i) const { return get<DType>(i); }

 private:
  template <class T>
  const T& get(std::size_t i) const {
    return std::get<T>(step_.args.at(i));
  }
  Tensor tensor(const Ref& ref) const { return values_.at(static_cast<std::size_t>(ref.step)); }

  const Step& step_;
  const Tensors& values_;
};

struct Call {
  std::string code;
  std::function<Tensor(Graph& g, const Args& a)> build;
};
using Calls = std::map<std::string, Call>;

const Calls& all_calls();
const Call& call_of(const Step& step);
// Loops and regions, whose bodies a layout may be refused for.
const Calls& region_calls();

}  // namespace weft::random_graphs

// Graph: the user's program. Inputs, variables and ops with named dims; it does not mention processors.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/array.h"
#include "weft/tensor.h"

namespace weft {

// The initial value of a variable. It depends only on the variable's name and the seed, not on the layout.
struct Init {
  enum class Kind { kConstant, kUniform, kNormal, kTruncatedNormal, kValues };
  Kind kind = Kind::kConstant;
  Number a = 0;  // the constant; the lower bound; the mean
  double b = 0;  // the upper bound; the deviation
  std::shared_ptr<const Array> values = {};
  // If set, the variable holds several variables along the dim `stacked`: slice i is initialized exactly as a separate
  // variable named `parts[i]` would be. See init::stacked.
  std::string stacked = {};
  std::vector<std::string> parts = {};
  std::vector<double> scales = {};  // factors for the initial values of each part; empty: 1
};

namespace init {

enum class Fan { kIn, kOut, kAverage };

Init zeros();
Init ones();
Init constant(const Number& value);
Init uniform(double low, double high);
Init normal(double deviation, double mean = 0);
Init truncated_normal(double deviation, double mean = 0);  // within two deviations
Init values(Array array);
// Variance scale / fan. The fan is the product of the sizes of the named dims: `in` for kIn, `out` for kOut, the mean
// of both for kAverage. Truncated normal (with its variance restored) or uniform.
Init variance_scaling(double scale, Fan fan, const Shape& in, const Shape& out, bool uniform = false);
// Initializes slice i of `dim` exactly as a separate variable named `parts[i]` would be. The name of that variable is
// this variable's name with `parts[i]` in place of `dim`: "qkv/kernel" [d_model, qkv=3, …] stacked along "qkv" starts
// like "q/kernel", "k/kernel" and "v/kernel" [d_model, …]. `scales`, if given, are factors for the initial values of
// each part.
Init stacked(Init each, const DimRef& dim, std::vector<std::string> parts, std::vector<double> scales = {});
// A normal distribution of standard deviation 1 / sqrt(the product of these dims).
Init fan_in(const Shape& dims);
inline Init fan_in(const Dim& dim) { return fan_in(Shape{dim}); }

}  // namespace init

// `stored` is the dtype in a checkpoint, `slice` the dtype that the optimizer updates, `activation` the dtype that the
// model reads. `slice` and `activation` default to `stored`.
struct VariableOptions {
  DType stored = DType::kF32;
  std::optional<DType> slice = {};
  std::optional<DType> activation = {};
  bool trainable = true;
  std::string slot_of = {};  // the variable whose optimizer state this is; storage layouts split it from level 1 on
};

class Graph {
 public:
  Graph();
  explicit Graph(std::shared_ptr<GraphData> data) : data_(std::move(data)) {}

  // A value that every run is given. UserError if the name is already used.
  Tensor input(const std::string& name, const Shape& shape, DType dtype = DType::kF32, Site site = Site::current());
  // State that persists between runs. Its full name is the open scopes and `name` joined by "/"; with a leading "/" it
  // is only the rest of `name`. UserError if a variable of that full name exists.
  Tensor variable(const std::string& name, const Shape& shape, const Init& init = {},
                  const VariableOptions& options = {}, Site site = Site::current());

  Tensors variables() const;  // trainable variables, in order of declaration
  Tensors all_variables() const;
  Tensors inputs() const;

  // During its lifetime new names begin with "name/".
  class Scope {
   public:
    Scope(std::shared_ptr<GraphData> data, const std::string& name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::shared_ptr<GraphData> data_;
  };
  Scope scope(const std::string& name) const { return {data_, name}; }

  const std::shared_ptr<GraphData>& data() const { return data_; }

 private:
  std::shared_ptr<GraphData> data_;
};

// The full name of the variable that a tensor is (also behind the cast to its activation dtype). UserError for any
// other tensor.
std::string variable_name(const Tensor& x);

// The gradients of sum(ys * dys) with respect to each x, as new ops of the graph; dys default to ones. An x that no y
// depends on through differentiable ops gives an empty Tensor. UserError if a path goes through an op without a
// gradient.
Tensors gradients(const Tensors& ys, const Tensors& xs, const Tensors& dys = {}, Site site = Site::current());

// A scalar and its gradient with respect to each x.
struct ValueAndGradients {
  Tensor value;
  Tensors gradients;
};
// Calls the function once and differentiates its result. UserError if the result is not a floating-point scalar, or if it
// does not depend on an x.
ValueAndGradients value_and_grad(const std::function<Tensor(const Tensors& xs)>& function, const Tensors& xs,
                                 Site site = Site::current());

// During its lifetime new ops belong to the update phase: the ops of an optimizer after gradients().
class UpdatePhase {
 public:
  explicit UpdatePhase(const Tensor& any);
  ~UpdatePhase();
  UpdatePhase(const UpdatePhase&) = delete;
  UpdatePhase& operator=(const UpdatePhase&) = delete;

 private:
  std::shared_ptr<GraphData> graph_;
  int before_;
};

}  // namespace weft

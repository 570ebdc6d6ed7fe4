// Tensor: a handle to a value of a Graph. Cheap to copy; keeps its graph alive.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/dim.h"
#include "weft/dtype.h"
#include "weft/id.h"
#include "weft/number.h"
#include "weft/site.h"

namespace weft {

struct GraphData;

using NodeId = Id<struct Node>;  // an op of a graph

// The n-th output of an op.
struct TensorId {
  NodeId node = {};
  int output = 0;
  auto operator<=>(const TensorId&) const = default;
};

class Tensor {
 public:
  Tensor() = default;  // empty: no value, for example the gradient of a tensor that no y depends on
  Tensor(std::shared_ptr<GraphData> graph, TensorId id) : graph_(std::move(graph)), id_(id) {}

  explicit operator bool() const { return graph_ != nullptr; }
  const Shape& shape() const;
  DType dtype() const;
  const std::string& name() const;  // scopes, op and ordinal joined, or the name of named()
  Site site() const;                // the user's line
  // Gives the value a name for messages and reports; returns itself.
  Tensor named(const std::string& name) const;

  const std::shared_ptr<GraphData>& graph() const { return graph_; }
  TensorId id() const { return id_; }
  bool operator==(const Tensor&) const = default;

 private:
  std::shared_ptr<GraphData> graph_;
  TensorId id_;
};

using Tensors = std::vector<Tensor>;

// A dim of an existing tensor, given as a Dim or by its name. Functions take a DimRef for a dim that a tensor has, and a
// Dim for a dim that they make.
class DimRef {
 public:
  DimRef() = default;  // no dim
  DimRef(const Dim& dim) : dim_(dim) {}
  DimRef(std::string name, std::int64_t size) : dim_{std::move(name), size} {}
  DimRef(const char* name) : DimRef(std::string(name)) {}
  DimRef(std::string name) : dim_{std::move(name), 0} {}

  const std::string& name() const { return dim_.name; }
  // The dim with its size in `x`. A Dim is returned as it was given: the function that uses it compares the sizes.
  // UserError for a name that x lacks, or that none of `xs` has.
  Dim in(const Tensor& x, Site site = Site::current()) const;
  Dim in(const Tensors& xs, Site site = Site::current()) const;

 private:
  Dim dim_;  // size 0: given by name
};

// Several dims of an existing tensor, in order: {batch, length}, {"batch", "length"} or a Shape.
class DimRefs {
 public:
  DimRefs() = default;
  DimRefs(std::initializer_list<DimRef> dims) : dims_(dims) {}
  DimRefs(const Shape& shape) : dims_(shape.begin(), shape.end()) {}

  bool empty() const { return dims_.empty(); }
  Shape in(const Tensor& x, Site site = Site::current()) const;  // like DimRef::in
  Shape in(const Tensors& xs, Site site = Site::current()) const;

 private:
  std::vector<DimRef> dims_;
};

// A tensor or a number as an operand of an operator, with its line.
class Operand {
 public:
  // UserError for an empty tensor.
  Operand(const Tensor& tensor, Site site = Site::current()) : tensor_(tensor), site_(site) {
    if (!tensor) refuse_empty(site);
  }
  template <class T>
  requires std::is_arithmetic_v<T> Operand(T number, Site site = Site::current()) : number_(number), site_(site) {}
  Operand(const Number& number, Site site = Site::current()) : number_(number), site_(site) {}

  const Tensor& tensor() const { return tensor_; }  // empty for a number
  const Number& number() const { return number_; }
  const Site& site() const { return site_; }

 private:
  [[noreturn]] static void refuse_empty(const Site& site);

  Tensor tensor_;
  Number number_;
  Site site_;
};

}  // namespace weft

// Lower bounds of what a choice costs, without compiling it.
//
// The work of a step is read off the program of one processor, which the real compiler made. Every program of the step
// does at least this work: a split divides the sizes of an instruction and adds collectives. A contraction over a split
// dim leaves a partial value. Its reduction is counted if the value is used soon: what is computed between the value
// and its first use can hide that much of it.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "plan/choice.h"
#include "plan/folded.h"
#include "plan/mesh_groups.h"

namespace weft {

// A number that splits divide: `size` over the parts of all dims in `dims`.
struct Extent {
  double size = 1;
  DimSet dims = 0;
  bool operator==(const Extent&) const = default;
};

class WorkBound {
 public:
  WorkBound(const FoldedGraphs::Parts& parts, const SplitRules& rules, const std::string& batch, const Machine& machine,
            int processors, const Target& target);

  // At least the seconds of every choice whose axes begin with these; `rest`: the processors along all further axes.
  double of_prefix(std::span<const AxisRole> axes, double rest) const;
  // At least the seconds of the choice by the model. `ignores_update`: whatever its storage layout is.
  double seconds(const Choice& choice, const MeshGroups& groups, bool ignores_update) const;

  // To add to seconds(), which ignores the update: at least its seconds under the best storage layout; what it computes, and on machines that compute
  // nothing meanwhile also its reductions of gradients and gathers of variables.
  double update_seconds(const Choice& choice, const MeshGroups& groups, bool may_store) const;

  // At least the seconds in which the storage layout gathers variables, if nothing is computed meanwhile; 0 on machines
  // that compute meanwhile.
  double gather_seconds(const Choice& choice, const MeshGroups& groups) const;

  // The dims of at least a hundredth of all bytes of variables.
  DimSet heavy_dims() const;
  // At least the bytes of the choice's variables on each processor, by the model.
  double variable_bytes(const Choice& choice) const;

  // An instruction that computes.
  struct Work {
    enum class Kind : std::uint8_t { kProduct, kAttend, kSweep, kRandom };
    Kind kind = Kind::kSweep;
    DType dtype = DType::kF32;
    Extent m = {}, n = {}, k = {}, outer = {};  // kProduct
    Extent flops = {};                          // kAttend, kSweep
    std::vector<Extent> bytes = {};             // kSweep; kRandom: the draws
    double rate = 0;                            // kAttend: flops per second
    DimSet dims = 0;                            // of all operands and results
    bool is_update = false;
    bool operator==(const Work&) const = default;
  };
  // A value that is partial over the axes of `summed`, or gathered over them, and the work between it and its first use: order[begin, end).
  struct Partial {
    Extent bytes;
    DimSet summed = 0;
    std::size_t begin = 0, end = 0;
    double trips = 1;
    bool is_gathered = false;
  };
  struct Part {
    double weight = 1;
    std::vector<std::pair<std::size_t, double>> order;  // work by its number, and how often it runs in a step
    std::vector<Partial> partials, gradients;
  };
  struct Variable {
    Extent bytes;
    VariableDims dims;
    double count = 0;  // of all layers
    bool is_slot = false, is_trainable = false;
    bool is_assigned = false;   // by the step
    double bytes_gathered = 0;  // with a storage layout of level 3, for each byte of the variable
  };

 private:
  struct Splits;
  Splits splits_of(std::span<const AxisRole> axes, std::int64_t microbatches) const;
  double seconds(const Work& work, const Splits& splits) const;
  double fastest_seconds(const Work& work, const Splits& splits) const;
  double stored_seconds(const Work& work, const Splits& splits, const Choice& choice) const;
  double gradient_seconds(const Partial& gradient, const Splits& splits, const Choice& choice,
                          const MeshGroups& groups) const;
  void add_variables(const FoldedGraphs::Part& part, const SplitRules& rules);
  std::size_t number_of(Work work);

  const Machine& machine_;
  const Rates& rates_;
  double crowding_;
  DimSet batch_ = 0;
  double fastest_sweep_ = 0;
  std::vector<Work> works_;
  std::vector<double> totals_;  // by work: how often it runs in a step of all layers
  std::vector<double> apart_;   // likewise, where it hides no reduction of a partial value
  std::vector<Part> parts_;
  std::vector<Variable> variables_;
};

}  // namespace weft

// Prices of candidates. What a candidate costs is read off a program that the real partitioner and passes make, with few
// layers (plan/folded.h), and that all candidates of one pattern share.
//
// Two candidates have one pattern if their meshes differ only in the sizes of axes, or in the order of axes that share no
// dim, and if a storage layout splits the same dim of every variable. The program is compiled on the mesh of the pattern
// whose largest axis is the smallest; a candidate's price is that program with the sizes of the candidate's own mesh, on
// its own links. Candidates for which the same values of that program do not divide are a pattern of their own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "plan/choice.h"
#include "plan/folded.h"
#include "plan/resized.h"
#include "plan/workers.h"

namespace weft {

// What a candidate costs, by the model.
struct Price {
  Prediction predicted;
  double floor = 0;  // see ResizedStep
};

class Patterns {
 public:
  struct Facts {
    const SplitRules& rules;
    FoldedGraphs& graphs;
    const Machine& machine;
    const Target& target;
    bool own_mesh = false;  // every candidate is compiled on its own mesh
  };
  explicit Patterns(const Facts& facts);

  // Compiles what prices of these choices need, at the same time. Not for Recompute::kCompiler.
  void prepare(const std::vector<Choice>& choices, Workers& workers);
  // A text for the programs that price() would compile, the same for choices that share them; empty: they are there.
  std::string needs(const Choice& choice);
  // Empty: the partitioner refuses the choice. Thread-safe for choices whose programs are there.
  std::optional<Price> price(const Choice& choice);
  // Of a choice with a price and without a storage layout: at least what the update computes under each set of stored axes.
  std::vector<double> update_seconds(const Choice& choice);

  const MeshGroups& groups(const std::vector<int>& sizes);
  std::int64_t compiled() const { return compiled_; }  // programs
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  // The choice with its axes in the order of its pattern, and where each axis is in the choice.
  struct Ordered {
    Choice choice;
    std::vector<std::size_t> from;
  };
  struct Part {
    double weight = 1;
    std::optional<ResizedCost> cost;
  };
  struct Programs {
    std::vector<Part> parts;  // empty: refused
    bool is_uneven = false;   // refused because some size does not divide
  };
  // What is to be compiled for a choice, and for whom it is kept.
  struct Request {
    std::string key;
    Choice choice;
  };

  // Where the programs of a choice are kept; null: not compiled yet.
  struct Place {
    std::string key;
    const Programs* programs = nullptr;
  };

  Ordered ordered(const Choice& choice) const;
  std::string key_of(const Choice& ordered) const;
  std::string split_variables(const Choice& ordered) const;
  Choice reference_of(const Choice& ordered, const std::function<bool(const Choice&)>& shares) const;
  Place place_of(const Choice& ordered) const;
  std::optional<Request> missing(const Choice& choice);
  const Programs* find(const std::string& key) const;
  Programs compiled_on(const Choice& choice);
  ResizedMesh mesh_of(const Choice& choice, const Ordered& ordered);

  Facts facts_;
  std::vector<VariableDims> variables_;  // each kind once
  std::map<std::string, Programs> programs_;
  std::map<std::vector<int>, MeshGroups> groups_;
  std::mutex mutex_;  // of the groups, the failures and the count
  std::vector<std::string> failures_;
  std::int64_t compiled_ = 0;
};

}  // namespace weft

// What a compiled program costs if the axes of its mesh have other sizes.
//
// The instructions stay those of the mesh that the program was compiled for; a value's local size is its global size
// over the sizes of the axes that split it. On the program's own mesh the cost is that of Pricer, the bytes are those of
// plan_memory(). Elsewhere a compiler may choose other instructions: plan/patterns.h says where that is ruled out.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/mesh_groups.h"
#include "program/target.h"
#include "weft/machine.h"

namespace weft {

// `size` over the sizes of these axes.
struct AxisExtent {
  double size = 1;
  AxisSet axes = 0;
};

// A mesh whose axes are those of a program, in the program's order.
struct ResizedMesh {
  std::vector<double> shares = {};  // by set of axes: 1 / the product of their sizes
  std::vector<AxisSet> sets = {};   // by set of axes: the same axes as `groups` counts them
  const MeshGroups* groups = nullptr;

  double local(const AxisExtent& extent) const { return extent.size * shares[extent.axes]; }
};

// Linear in the programs of a step: see WeightedSum.
struct ResizedStep {
  double rest = 0;  // seconds of a step besides computation and waiting
  double compute = 0, wire = 0, exposed = 0, flops = 0;
  double variable_bytes = 0, arena_bytes = 0;
  // Seconds that no storage layout saves: work outside the update, and collectives that the forward and backward passes
  // wait for with nothing to do meanwhile.
  double floor = 0;

  void add(double weight, const ResizedStep& other);
};

class ResizedCost {
 public:
  // The machine outlives the object.
  ResizedCost(const Program& program, const Machine& machine, const Target& target);

  // The values that do not divide evenly: a text for their sizes and axes; empty: all divide.
  std::string uneven(std::span<const int> sizes) const;
  ResizedStep at(const ResizedMesh& mesh) const;
  // At least the seconds of the update if a storage layout splits its values over `stored` too. A value that these axes
  // split anyhow gets no smaller. Collectives count if the machine computes nothing meanwhile.
  double update_seconds(const ResizedMesh& mesh, AxisSet stored) const;

  // Neighbouring dims of a contraction that are walked as one.
  struct Run {
    AxisExtent size;
    bool is_unit = false;  // it is taken first for the matrix
  };
  struct Product {
    DType dtype = DType::kF32;
    std::vector<Run> m, n, k;
    AxisExtent outer;
  };
  struct Touch {
    int value = 0;  // whose storage it is
    AxisExtent bytes;
    bool is_written = false;
    bool is_update = false;  // it is a variable's new contents
  };
  struct Step {
    enum class Kind : std::uint8_t { kProduct, kAttend, kRandom, kSweep, kCollective, kDone, kLoop };
    Kind kind = Kind::kSweep;
    bool is_update = false;
    bool is_floor = false;  // counts for ResizedStep::floor
    bool has_done = false;
    int item = 0;                        // a product, collective or loop: its number
    int value = 0;                       // of a collective's first result; of a done
    double rate = 0;                     // of attention
    std::vector<AxisExtent> flops = {};  // of attention, sweeps; the draws of random
    std::vector<AxisExtent> bytes = {};  // read and written
    std::vector<AxisExtent> wide = {};   // of these, what wide products have beyond the width of their operands
    std::vector<Touch> touches = {};     // if caches matter
  };
  struct Collective {
    Operation operation;
    const char* name = "";
    AxisSet axes = 0;
    std::vector<AxisExtent> in, out;  // bytes
  };
  struct Body {
    std::vector<Step> steps;
    std::vector<Product> products;
    std::vector<Collective> collectives;
    std::vector<std::pair<Body, double>> loops;  // and how often they run
    std::vector<AxisExtent> touched_in_step;     // bytes
    int values = 0;
  };
  // Of the arena, or of the arena of a loop's body.
  struct Pieces {
    struct Piece {
      int first = 0, last = 0;
      AxisExtent bytes;
      int loop = -1;  // the arena of this loop
    };
    std::vector<Piece> pieces;
    std::vector<Pieces> loops;
    int end = 0;
    double packing = 1;  // the arena over the most that is live at once
  };

 private:
  struct Clock;
  void run(const Body& body, const ResizedMesh& mesh, Clock& clock) const;
  void run_collective(const Body& body, const Step& step, const ResizedMesh& mesh, Clock& clock) const;
  double memory_seconds(const Step& step, const ResizedMesh& mesh, Clock& clock) const;
  double work_seconds(const Body& body, const Step& step, const ResizedMesh& mesh, Clock& clock) const;
  double product_seconds(const Product& product, const ResizedMesh& mesh) const;
  double stored_seconds(const Collective& collective, bool is_update, const ResizedMesh& mesh, AxisSet stored) const;

  const Machine& machine_;
  const Rates& rates_;
  double crowding_;
  Body body_;
  Pieces arena_;
  std::vector<AxisExtent> flops_, variable_bytes_;
  std::vector<std::pair<std::int64_t, AxisSet>> divisions_;  // sizes, and the axes that must divide them
};

}  // namespace weft

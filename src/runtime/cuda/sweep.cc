#include "runtime/cuda/sweep.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/index.h"
#include "base/str.h"
#include "program/fusible.h"
#include "runtime/cuda/row_registers.h"
#include "runtime/cuda/sweep_division.h"
#include "runtime/cuda/text.h"
#include "runtime/host/strided.h"
#include "weft/error.h"

namespace weft::cuda {

namespace {

class Sweep {
 public:
  Sweep(const Work& work, const Program& body)
      : work_(work),
        body_(body),
        plan_(*row_plan(body)),
        rows_(plan_.rows),
        columns_(plan_.cols),
        division_(size_of_dims(rows_), size_of_dims(columns_), 1) {
    for (std::size_t i = 0; i < body.inputs.size(); ++i) operand_of_[body.inputs[i].value] = i;
    for (const Instr& instr : body.body) maker_[instr.outputs[0]] = &instr;
    find_runs();
    division_ = Division(division_.rows, division_.columns, best_width());
  }

  void run() {
    for (const Instr& instr : body_.body)
      if (plan_.late[instr.outputs[0]] && instr.is<ReduceDims>()) take_partials(instr);
    const bool in_rows = plan_.whole_rows;
    if (in_rows) by_rows();
    else if (!partials_.empty()) by_tiles();
    else if (has_outputs(Extent::kFull)) flat();
    if (!in_rows && has_outputs(Extent::kRow)) row_results();
    if (has_outputs(Extent::kColumn)) column_results();
    if (has_outputs(Extent::kScalar)) scalar_results();
  }

 private:
  // Text of the statements that compute row values (and scalars), each once.
  struct RowFrame {
    std::string text;
    std::map<ValueId, std::string> known;
  };
  // Text of one pack of elements: before, inside and behind the loop over its width.
  struct ElementFrame {
    RowFrame& row;
    std::int64_t width;
    int pass = -1;  // over a row that is partly in registers; -1: nothing is
    std::string before = {}, inside = {}, behind = {};
    std::map<ValueId, std::string> known = {};
    std::set<std::size_t> placed = {};  // operands and results whose column offset is known
  };
  struct Partial {
    const Instr* instr;
    std::string name;
    bool scalar;
    void* data;
  };

  static std::int64_t size_of_dims(const std::vector<Dim>& dims) {
    std::int64_t size = 1;
    for (const Dim& dim : dims) size *= dim.size;
    return size;
  }

  // ---- operands

  std::size_t operands() const { return work_.inputs.size(); }
  const TensorView& view(std::size_t k) const {
    return k < operands() ? work_.inputs[k] : work_.outputs[k - operands()];
  }
  Extent extent(ValueId id) const { return plan_.extents[id]; }
  // Has a number for every element, or for every column: where there are no rows the two are one.
  bool is_of_elements(ValueId id) const { return extent(id) == Extent::kFull || extent(id) == Extent::kColumn; }
  const Value& value(ValueId id) const { return body_.values[id]; }
  const Program* program() const { return &work_.program; }

  void find_runs() {
    const auto strides = [&](const std::vector<Dim>& dims) {
      std::vector<std::vector<std::int64_t>> all;
      for (std::size_t k = 0; k < operands() + work_.outputs.size(); ++k)
        all.push_back(strides_along(view(k), Shape(dims)));
      return all;
    };
    row_runs_ = joined_runs(rows_, strides(rows_));
    column_runs_ = joined_runs(columns_, strides(columns_));
  }

  std::int64_t last_stride(std::size_t k) const { return column_runs_.empty() ? 0 : column_runs_.back().strides[k]; }

  bool is_aligned(std::size_t k, std::int64_t width) const {
    const auto bytes = static_cast<std::int64_t>(size_of(view(k).dtype));
    if (reinterpret_cast<std::uintptr_t>(view(k).data) % static_cast<std::uintptr_t>(bytes * width) != 0) return false;
    for (const Run& run : row_runs_)
      if (run.strides[k] % width != 0) return false;
    for (std::size_t r = 0; r + 1 < column_runs_.size(); ++r)
      if (column_runs_[r].strides[k] % width != 0) return false;
    return last_stride(k) == 1;
  }

  // Wide enough that the narrowest of the large values is moved 16 bytes at a time, but no more than 32 of any.
  std::int64_t best_width() const {
    if (column_runs_.empty()) return 1;
    std::size_t least = 8, most = 1;
    bool any = false;
    for (std::size_t k = 0; k < operands() + work_.outputs.size(); ++k) {
      if (last_stride(k) != 1) continue;
      least = std::min(least, size_of(view(k).dtype));
      most = std::max(most, size_of(view(k).dtype));
      any = true;
    }
    if (!any) return 1;
    for (auto width = static_cast<std::int64_t>(std::min<std::size_t>(16 / least, 32 / most)); width > 1; width /= 2) {
      if (column_runs_.back().size % width != 0) continue;
      for (std::size_t k = 0; k < operands() + work_.outputs.size(); ++k)
        if (is_aligned(k, width)) return width;
    }
    return 1;
  }

  bool has_outputs(Extent which) const {
    return std::ranges::any_of(body_.outputs, [&](const ProgramOutput& o) { return extent(o.value) == which; });
  }

  void take_partials(const Instr& instr) {
    const ValueId id = instr.outputs[0];
    const bool scalar = extent(id) == Extent::kScalar;
    const Division least(division_.rows, division_.columns, 1);
    const auto bytes =
        static_cast<std::size_t>(partial_count(least, plan_.whole_rows, scalar)) * wide_size(value(id).dtype);
    partials_.push_back({&instr, str("partial", id), scalar, work_.workspace(bytes)});
  }

 public:
  // The most partial sums of one reduction.
  static std::int64_t partial_count(const Division& d, bool by_rows, bool scalar) {
    const std::int64_t groups = by_rows  ? std::min(d.rows, kSweepMostGroups)
                                : scalar ? d.tiles * d.splits
                                         : d.splits;
    return groups * (scalar ? 1 : d.columns);
  }

 private:
  // ---- parameters

  std::vector<Param> params() {
    std::vector<Param> all;
    for (std::size_t k = 0; k < operands(); ++k) all.push_back(in(view(k).dtype, str("x", k), view(k).data));
    for (std::size_t k = operands(); k < operands() + work_.outputs.size(); ++k)
      all.push_back(out(view(k).dtype, str("x", k), view(k).data));
    for (const Partial& p : partials_)
      all.push_back(typed(wide_type(value(p.instr->outputs[0]).dtype), p.name, p.data));
    for (const auto& [key, place] : begins_) all.push_back(number(place.first, place.second));
    return all;
  }

  // The first global index of a value's shard along a dim, as a parameter.
  std::string begin_of(ValueId id, const std::string& dim) {
    const Value& v = value(id);
    auto& place = begins_[{id, dim}];
    if (place.first.empty())
      place = {str("begin", begins_.size()),
               shard_begin(v.shape, v.sharding, work_.program.mesh, work_.processor)[v.shape.position(dim)]};
    return place.first;
  }

  // ---- values

  static std::string index_in(const std::vector<Dim>& dims, const std::string& dim, const std::string& i) {
    std::int64_t inner = 1;
    for (std::size_t d = dims.size(); d-- > 0; inner *= dims[d].size) {
      if (dims[d].name != dim) continue;
      const std::string index = inner > 1 ? str(i, " / ", inner) : i;
      return d == 0 ? str("(long long)(", index, ")") : str("(long long)((", index, ") % ", dims[d].size, ")");
    }
    return {};
  }

  MapText map_of(const Instr& instr, const std::vector<std::string>& args, const std::string& column) {
    return map_text(instr.as<Map>()->nodes, args, str("n", instr.outputs[0]), [&](const std::string& dim) {
      std::string index = index_in(rows_, dim, "r");
      if (index.empty()) index = index_in(columns_, dim, column);
      return str(begin_of(instr.outputs[0], dim), " + ", index);
    });
  }

  // The register of a row value or a scalar.
  std::string row_value(ValueId id, RowFrame& frame) {
    if (const auto found = frame.known.find(id); found != frame.known.end()) return found->second;
    std::string name;
    if (const auto operand = operand_of_.find(id); operand != operand_of_.end()) {
      const std::size_t k = operand->second;
      name = str("v", id);
      frame.text += str("const ", register_type(view(k).dtype), " ", name, " = get(x", k, "[",
                        offset_text(row_runs_, k, "r"), "]);\n");
    } else {
      const Instr& instr = *maker_.at(id);
      internal_check(instr.is<Map>(), "a reduction is used before its sweep");
      std::vector<std::string> args;
      for (const ValueId arg : instr.inputs) args.push_back(row_value(arg, frame));
      const MapText map = map_of(instr, args, "0");
      frame.text += map.statements;
      name = map.result;
    }
    return frame.known[id] = name;
  }

  std::string place(std::size_t k, ElementFrame& frame) {
    const std::string name = str("o", k);
    if (frame.placed.insert(k).second)
      frame.before += str("const long long ", name, " = ", offset_text(row_runs_, k, "r"), " + ",
                          offset_text(column_runs_, k, "c"), ";\n");
    return name;
  }

  std::string load(ValueId id, std::size_t k, ElementFrame& frame) {
    const std::string name = str("v", id), type = stored_type(view(k).dtype);
    const std::string declared = str("const ", register_type(view(k).dtype), " ", name, " = get(");
    if (frame.width > 1 && is_aligned(k, frame.width)) {
      const bool kept = frame.pass >= 0 && registers_.operands.contains(id);
      const std::string pack = kept ? str("p", k, "[j]") : str("p", k);
      if (kept && frame.pass > 0 && division_.team > 32 && size_of(view(k).dtype) * frame.width % 4 == 0) {
        // What an earlier pass computed from it would not fit the registers of long rows.
        frame.before += str("const auto q", k, " = hidden(p", k, "[j]);\n");
        frame.inside += str(declared, "q", k, ".v[w]);\n");
        return name;
      }
      if (!kept)
        frame.before += str("const Pack<", type, ", ", frame.width, "> ", pack, " = *(const Pack<", type, ", ",
                            frame.width, ">*)(x", k, " + ", place(k, frame), ");\n");
      frame.inside += str(declared, pack, ".v[w]);\n");
    } else if (frame.width > 1 && last_stride(k) == 0) {
      frame.before += str(declared, "x", k, "[", place(k, frame), "]);\n");
    } else {
      frame.inside += str(declared, "x", k, "[", place(k, frame), " + w * ", last_stride(k), "ll]);\n");
    }
    return name;
  }

  // The register of any value at an element.
  std::string element_value(ValueId id, ElementFrame& frame) {
    if (const auto found = frame.known.find(id); found != frame.known.end()) return found->second;
    if (const Extent e = extent(id); e == Extent::kRow || e == Extent::kScalar) return row_value(id, frame.row);
    std::string name;
    const auto kept = frame.pass >= 0 ? registers_.values.find(id) : registers_.values.end();
    if (const auto operand = operand_of_.find(id); operand != operand_of_.end()) {
      name = load(id, operand->second, frame);
    } else if (kept != registers_.values.end() && kept->second < frame.pass) {
      name = str("v", id);
      frame.inside += str("const ", register_type(value(id).dtype), " ", name, " = get(s", id, "[j].v[w]);\n");
    } else {
      const Instr& instr = *maker_.at(id);
      internal_check(instr.is<Map>(), "a reduction is used before its sweep");
      std::vector<std::string> args;
      for (const ValueId arg : instr.inputs) args.push_back(element_value(arg, frame));
      const MapText map = map_of(instr, args, "(c + w)");
      frame.inside += map.statements;
      name = map.result;
      if (kept != registers_.values.end())
        frame.inside += str("s", id, "[j].v[w] = put<", stored_type(value(id).dtype), ">(", name, ");\n");
    }
    return frame.known[id] = name;
  }

  void store(std::size_t output, const std::string& reg, ElementFrame& frame, const std::string& guard) {
    const std::size_t k = operands() + output;
    const std::string type = stored_type(view(k).dtype), where = place(k, frame);
    if (frame.width > 1 && is_aligned(k, frame.width)) {
      const std::string pack = str("Pack<", type, ", ", frame.width, ">");
      frame.before += str(pack, " q", k, ";\n");
      frame.inside += str("q", k, ".v[w] = put<", type, ">(", reg, ");\n");
      frame.behind += str(guard, "*(", pack, "*)(x", k, " + ", where, ") = q", k, ";\n");
    } else {
      frame.inside += str(guard, "x", k, "[", where, " + w * ", last_stride(k), "ll] = put<", type, ">(", reg, ");\n");
    }
  }

  static std::string text_of(const ElementFrame& frame) {
    return str("{\n", frame.before, "#pragma unroll\nfor (int w = 0; w < ", frame.width, "; ++w) {\n", frame.inside,
               "}\n", frame.behind, "}\n");
  }

  // All full results; what joins rows of full or row values, by joined(partial, number).
  template <class Joined>
  void full_results(ElementFrame& frame, const std::string& guard, const Joined& joined) {
    std::vector<std::pair<std::size_t, std::string>> stores;
    for (std::size_t o = 0; o < body_.outputs.size(); ++o)
      if (extent(body_.outputs[o].value) == Extent::kFull)
        stores.emplace_back(o, element_value(body_.outputs[o].value, frame));
    for (const Partial& p : partials_) {
      const ValueId from = p.instr->inputs[0];
      if (is_of_elements(from)) joined(p, element_value(from, frame));
    }
    for (const auto& [o, reg] : stores) store(o, reg, frame, guard);
  }

  std::string joining(const Partial& p, const std::string& sum, const std::string& reg) const {
    return str(sum, " = ", join_type(p.instr->as<ReduceDims>()->how), "()(", sum, ", (",
               wide_type(value(p.instr->outputs[0]).dtype), ")widen(", reg, "));\n");
  }
  std::string start_of(const Partial& p) const {
    return join_start(p.instr->as<ReduceDims>()->how, value(p.instr->outputs[0]).dtype);
  }
  std::string wide_of(const Partial& p) const { return wide_type(value(p.instr->outputs[0]).dtype); }

  // ---- flat

  void flat() {
    const std::int64_t each = division_.columns / division_.width, packs = division_.rows * each;
    RowFrame row;
    ElementFrame frame{row, division_.width};
    full_results(frame, "", [](const Partial&, const std::string&) {});
    work_.launch(divided_up(packs, kSweepThreads), kSweepThreads, params(),
                 str("const ", index_type(), " i = blockIdx.x * (", index_type(), ")", kSweepThreads,
                     " + threadIdx.x;\nif (i >= ", packs, ") return;\nconst ", index_type(), " r = i / ", each,
                     ", c = i % ", each, " * ", division_.width, ";\n", row.text, text_of(frame)));
  }

  std::string index_type() const {
    return division_.rows * division_.columns < (std::int64_t{1} << 31) ? "unsigned" : "unsigned long long";
  }

  // ---- rows

  // The pass after which a value is known: how many reductions along the row come one after another before it.
  int level(ValueId id) {
    if (const auto found = levels_.find(id); found != levels_.end()) return found->second;
    int most = 0;
    if (const auto maker = maker_.find(id); maker != maker_.end()) {
      for (const ValueId arg : maker->second->inputs) most = std::max(most, level(arg));
      if (maker->second->is<ReduceDims>() && extent(id) == Extent::kRow) ++most;
    }
    return levels_[id] = most;
  }

  void choose_registers(int passes) {
    if (passes < 2 || division_.packs > 8) return;
    constexpr std::int64_t kRegisterBytes = 65536 * 4, kMostBytes = 192;  // of a multiprocessor; of a thread
    const std::int64_t most = std::min(kMostBytes, kRegisterBytes / 2 / (division_.team * division_.per_block));
    registers_ = cuda::choose_registers({body_, plan_, passes, [this](ValueId id) { return level(id); }},
                                        division_.packs * division_.width, most, [this](ValueId id) {
                                          return division_.width > 1 && is_aligned(operand_of_.at(id), division_.width);
                                        });
  }

  std::string over_packs(const std::string& inside) const {
    const bool whole = division_.packs * division_.team * division_.width == division_.columns;
    return str(division_.packs <= 8 ? "#pragma unroll\n" : "", "for (int j = 0; j < ", division_.packs,
               "; ++j) {\nconst unsigned c = (j * ", division_.team, " + t) * ", division_.width, ";\n",
               whole ? "" : str("if (c < ", division_.columns, ") "), inside, "}\n");
  }

  // Whether column sums of a thread fit its registers.
  bool sums_in_registers() const { return division_.packs * division_.width <= 64 && division_.packs <= 8; }

  std::string sum_place(const Partial& p) const {
    return sums_in_registers() ? str("sum_", p.name, "[j * ", division_.width, " + w]")
                               : str(p.name, "[group * ", division_.columns, "ll + c + w]");
  }

  void by_rows() {
    int passes = 1;
    for (const Instr& instr : body_.body) passes = std::max(passes, level(instr.outputs[0]) + 1);
    choose_registers(passes);
    // Few rows are in work at once where threads hold sums, so they load each next row while they work on one.
    const bool ahead = !partials_.empty() && division_.per_block > 1;
    RowFrame row;
    const std::string first = ahead ? load_ahead(row) : "";
    if (!ahead) {
      for (const auto& [id, k] : operand_of_)
        if (extent(id) == Extent::kRow) row_value(id, row);
      load_registers(row);
    }
    for (int pass = 0; pass + 1 < passes; ++pass) reduce_rows(pass, row);
    write_rows(row, passes - 1);
    const std::string rows =
        str("for (", index_type(), " base = blockIdx.x * ", division_.per_block, "u; base < ", division_.rows,
            "; base += gridDim.x * ", division_.per_block, "u) {\nconst bool valid = base + team < ", division_.rows,
            ";\nconst ", index_type(), " r = valid ? base + team : ", division_.rows - 1, ";\n", row.text, "}\n");
    const std::int64_t blocks = partials_.empty() ? divided_up(division_.rows, division_.per_block) : division_.groups;
    work_.launch(blocks, static_cast<int>(division_.team * division_.per_block), params(),
                 str("__shared__ long long shared[32];\nconst int t = threadIdx.x % ", division_.team,
                     ", team = threadIdx.x / ", division_.team,
                     ";\nconst long long group = blockIdx.x;\n(void)shared; (void)group;\n", sums_before_rows(), first,
                     rows, sums_behind_rows()));
  }

  // Operands of row r come from registers that were loaded before; those of the next row are loaded. Gives the text that
  // loads the first row.
  std::string load_ahead(RowFrame& row) {
    std::string declared, loads, taken;
    for (const auto& [id, k] : operand_of_) {
      const std::string at = str("x", k, "[", offset_text(row_runs_, k, "ahead"), "]");
      if (extent(id) == Extent::kRow) {
        const std::string type = register_type(view(k).dtype);
        declared += str(type, " next", k, ";\n");
        loads += str("next", k, " = get(", at, ");\n");
        taken += str("const ", type, " v", id, " = next", k, ";\n");
        row.known[id] = str("v", id);
      } else if (extent(id) == Extent::kFull && division_.width > 1 && is_aligned(k, division_.width)) {
        const std::string pack = pack_of(view(k).dtype);
        registers_.operands.insert(id);
        declared += str(pack, " next", k, "[", division_.packs, "];\n");
        loads += over_packs(str("next", k, "[j] = *(const ", pack, "*)(&", at, " + ", offset_text(column_runs_, k, "c"),
                                ");\n"));
        taken += str(pack, " p", k, "[", division_.packs, "];\n", over_packs(str("p", k, "[j] = next", k, "[j];\n")));
      }
    }
    for (const auto& [id, pass] : registers_.values)
      taken += str(pack_of(value(id).dtype), " s", id, "[", division_.packs, "];\n");
    const auto load = [&](const std::string& base) {
      return str("{\nconst ", index_type(), " ahead = ", base, " + team < ", division_.rows, " ? ", base, " + team : ",
                 division_.rows - 1, ";\n", loads, "}\n");
    };
    row.text += str(taken, "if (base + gridDim.x * ", division_.per_block, "u < ", division_.rows, ") ",
                    load(str("(base + gridDim.x * ", division_.per_block, "u)")));
    return str(declared, load(str("(blockIdx.x * ", division_.per_block, "u)")));
  }

  std::string pack_of(DType dtype) const { return str("Pack<", stored_type(dtype), ", ", division_.width, ">"); }

  void load_registers(RowFrame& row) {
    for (const auto& [id, pass] : registers_.values)
      row.text += str(pack_of(value(id).dtype), " s", id, "[", division_.packs, "];\n");
    for (const ValueId id : registers_.operands) {
      const std::size_t k = operand_of_.at(id);
      const std::string pack = pack_of(view(k).dtype);
      row.text += str(pack, " p", k, "[", division_.packs, "];\n",
                      over_packs(str("p", k, "[j] = *(const ", pack, "*)(x", k, " + ", offset_text(row_runs_, k, "r"),
                                     " + ", offset_text(column_runs_, k, "c"), ");\n")));
    }
  }

  void reduce_rows(int pass, RowFrame& row) {
    std::vector<const Instr*> wanted;
    for (const Instr& instr : body_.body)
      if (instr.is<ReduceDims>() && extent(instr.outputs[0]) == Extent::kRow && level(instr.outputs[0]) == pass + 1)
        wanted.push_back(&instr);
    ElementFrame frame{row, division_.width, pass};
    std::string sums, joins;
    for (const Instr* instr : wanted) {
      const ValueId id = instr->outputs[0];
      const Partial p{instr, str(id), false, nullptr};
      const std::string reg = element_value(instr->inputs[0], frame);
      sums += str(wide_of(p), " a", id, " = ", start_of(p), ";\n");
      frame.inside += joining(p, str("a", id), reg);
      joins += str("const ", register_type(value(id).dtype), " v", id, " = narrow<", stored_type(value(id).dtype),
                   ">(team_join<", division_.team, ">(a", id, ", ", join_type(instr->as<ReduceDims>()->how),
                   "(), shared));\n");
    }
    const std::string loop = over_packs(text_of(frame));
    row.text += str(sums, loop, joins);
    for (const Instr* instr : wanted) row.known[instr->outputs[0]] = str("v", instr->outputs[0]);
  }

  void write_rows(RowFrame& row, int pass) {
    ElementFrame frame{row, division_.width, pass};
    std::string of_rows;
    for (const Partial& p : partials_)
      if (!is_of_elements(p.instr->inputs[0]))
        of_rows += str("if (valid && t == 0) ", joining(p, str("sum_", p.name), row_value(p.instr->inputs[0], row)));
    full_results(frame, "if (valid) ", [&](const Partial& p, const std::string& reg) {
      frame.inside += str("if (valid) ", joining(p, p.scalar ? str("sum_", p.name) : sum_place(p), reg));
    });
    if (!frame.inside.empty()) row.text += over_packs(text_of(frame));
    row.text += of_rows;
    std::string stores;
    for (std::size_t o = 0; o < body_.outputs.size(); ++o) {
      if (extent(body_.outputs[o].value) != Extent::kRow) continue;
      const std::size_t k = operands() + o;
      stores += str("x", k, "[", offset_text(row_runs_, k, "r"), "] = put<", stored_type(view(k).dtype), ">(",
                    row_value(body_.outputs[o].value, row), ");\n");
    }
    if (!stores.empty()) row.text += str("if (valid && t == 0) {\n", stores, "}\n");
  }

  std::string sums_before_rows() const {
    std::string text;
    for (const Partial& p : partials_) {
      if (p.scalar) text += str(wide_of(p), " sum_", p.name, " = ", start_of(p), ";\n");
      else if (sums_in_registers())
        text += str(wide_of(p), " sum_", p.name, "[", division_.packs * division_.width,
                    "];\n#pragma unroll\nfor (int e = 0; e < ", division_.packs * division_.width, "; ++e) sum_",
                    p.name, "[e] = ", start_of(p), ";\n");
      else
        text += over_packs(
            str("for (int w = 0; w < ", division_.width, "; ++w) ", sum_place(p), " = ", start_of(p), ";\n"));
    }
    return text;
  }

  std::string sums_behind_rows() const {
    std::string text;
    for (const Partial& p : partials_) {
      const std::string how = join_type(p.instr->as<ReduceDims>()->how);
      if (p.scalar) text += scalar_sum_of_teams(p, how);
      else if (division_.per_block > 1) text += column_sums_of_teams(p, how);
      else if (sums_in_registers())
        text += over_packs(str("{\n#pragma unroll\nfor (int w = 0; w < ", division_.width, "; ++w) ", p.name,
                               "[group * ", division_.columns, "ll + c + w] = ", sum_place(p), ";\n}\n"));
    }
    return text;
  }

  // The teams of a block join their sums one after another.
  std::string scalar_sum_of_teams(const Partial& p, const std::string& how) const {
    const std::string type = wide_of(p);
    return str("{\n__shared__ ", type, " sums[", division_.per_block, "];\nconst ", type, " own = team_join<",
               division_.team, ">(sum_", p.name, ", ", how, "(), shared);\nif (t == 0) sums[team] = own;\n__syncthreads();\n"
               "if (threadIdx.x == 0) {\n", type, " all = sums[0];\nfor (int i = 1; i < ", division_.per_block,
               "; ++i) all = ", how, "()(all, sums[i]);\n", p.name, "[group] = all;\n}\n}\n");
  }
  std::string column_sums_of_teams(const Partial& p, const std::string& how) const {
    internal_check(sums_in_registers(), "sums of a short row that do not fit registers");
    const std::string type = wide_of(p), each = str("#pragma unroll\nfor (int w = 0; w < ", division_.width, "; ++w) ");
    return str("{\n__shared__ ", type, " sums[", division_.columns, "];\nfor (int i = 0; i < ", division_.per_block,
               "; ++i) {\nif (team == i) {\n",
               over_packs(str("{\n", each, "sums[c + w] = i == 0 ? ", sum_place(p), " : ", how, "()(sums[c + w], ",
                              sum_place(p), ");\n}\n")),
               "}\n__syncthreads();\n}\nfor (int c = threadIdx.x; c < ", division_.columns, "; c += ",
               division_.team * division_.per_block, ") ", p.name, "[group * ", division_.columns,
               "ll + c] = sums[c];\n}\n");
  }

  // ---- tiles

  void by_tiles() {
    RowFrame row;
    ElementFrame frame{row, division_.width};
    std::string of_rows;
    full_results(frame, "", [&](const Partial& p, const std::string& reg) {
      frame.inside += joining(p, p.scalar ? str("sum_", p.name) : str("sum_", p.name, "[w]"), reg);
    });
    for (const Partial& p : partials_)
      if (!is_of_elements(p.instr->inputs[0]))
        of_rows += str("if (c == 0) ", joining(p, str("sum_", p.name), row_value(p.instr->inputs[0], row)));
    std::string sums, ends;
    for (const Partial& p : partials_) {
      const std::string how = join_type(p.instr->as<ReduceDims>()->how);
      sums += p.scalar ? str(wide_of(p), " sum_", p.name, " = ", start_of(p), ";\n")
                       : str(wide_of(p), " sum_", p.name, "[", division_.width, "];\nfor (int w = 0; w < ",
                             division_.width, "; ++w) sum_", p.name, "[w] = ", start_of(p), ";\n");
      ends += p.scalar ? str("{ const ", wide_of(p), " all = team_join<", kSweepThreads, ">(sum_", p.name, ", ", how,
                             "(), shared);\nif (threadIdx.x == 0) ", p.name, "[blockIdx.x] = all; }\n")
                       : tile_sum(p, how);
    }
    work_.launch(division_.tiles * division_.splits, kSweepThreads, params(),
                 str("__shared__ long long shared[", kSweepThreads, "];\nconst int tx = threadIdx.x % ", division_.across,
                     ", ty = threadIdx.x / ", division_.across, ";\nconst unsigned tile = blockIdx.x / ",
                     division_.splits, ", split = blockIdx.x % ", division_.splits, ";\nconst unsigned c = (tile * ",
                     division_.across, " + tx) * ", division_.width, ";\n", sums, "if (c < ", division_.columns,
                     ") for (", index_type(), " r = split * ", division_.down, " + ty; r < ", division_.rows, "; r += ",
                     division_.splits * division_.down, ") {\n", row.text, text_of(frame), of_rows, "}\n", ends));
  }

  // Joins the rows of threads of a block, from the first to the last.
  std::string tile_sum(const Partial& p, const std::string& how) const {
    return str("for (int w = 0; w < ", division_.width, "; ++w) {\n", wide_of(p), "* slots = (", wide_of(p),
               "*)shared;\n__syncthreads();\nslots[threadIdx.x] = sum_", p.name,
               "[w];\n__syncthreads();\nif (ty == 0 && c < ", division_.columns, ") {\n", wide_of(p),
               " all = slots[tx];\nfor (int y = 1; y < ", division_.down, "; ++y) all = ", how, "()(all, slots[y * ",
               division_.across, " + tx]);\n", p.name, "[split * ", division_.columns, "ll + c + w] = all;\n}\n}\n");
  }

  // ---- results per row, per column, and scalars

  void row_results() {
    RowFrame row;
    std::string stores;
    for (std::size_t o = 0; o < body_.outputs.size(); ++o) {
      if (extent(body_.outputs[o].value) != Extent::kRow) continue;
      const std::size_t k = operands() + o;
      stores += str("x", k, "[", offset_text(row_runs_, k, "r"), "] = put<", stored_type(view(k).dtype), ">(",
                    row_value(body_.outputs[o].value, row), ");\n");
    }
    launch_per_element(work_, division_.rows, params(), str("const long long r = i;\n", row.text, stores));
  }

  std::int64_t groups(bool scalar) const {
    return plan_.whole_rows ? division_.groups : scalar ? division_.tiles * division_.splits : division_.splits;
  }

  // The whole of a scalar's partial sums, in every thread of the block.
  std::string scalar_sum(const Partial& p, int threads) const {
    const ValueId id = p.instr->outputs[0];
    const std::string how = join_type(p.instr->as<ReduceDims>()->how);
    return str(wide_of(p), " a", id, " = ", start_of(p), ";\nfor (int g = threadIdx.x; g < ", groups(true),
               "; g += ", threads, ") a", id, " = ", how, "()(a", id, ", ", p.name, "[g]);\nconst ",
               register_type(value(id).dtype), " v", id, " = narrow<", stored_type(value(id).dtype), ">(team_join<",
               threads, ">(a", id, ", ", how, "(), shared));\n");
  }

  // Threads down share the partial sums of a column: as many as leave each thread some eight of them.
  int down_of_columns() const {
    const std::int64_t wanted = power_of_two_above(divided_up(groups(false), 8));
    return static_cast<int>(std::clamp<std::int64_t>(wanted, kSweepThreads / kSweepAcross, 1024 / kSweepAcross));
  }

  void column_results() {
    const int down = down_of_columns();
    RowFrame row;
    ElementFrame frame{row, 1};
    std::string sums = "const unsigned r = 0;\n(void)r;\n";
    for (const Partial& p : partials_) {
      const ValueId id = p.instr->outputs[0];
      const std::string how = join_type(p.instr->as<ReduceDims>()->how);
      if (p.scalar) sums += scalar_sum(p, kSweepAcross * down);
      else
        sums += str(wide_of(p), " a", id, " = ", start_of(p), ";\nif (c < ", division_.columns,
                    ") for (int g = ty; g < ", groups(false), "; g += ", down, ") a", id, " = ", how, "()(a", id, ", ", p.name,
                    "[g * ", division_.columns, "ll + c]);\n__syncthreads();\n((", wide_of(p),
                    "*)shared)[threadIdx.x] = a", id, ";\n__syncthreads();\na", id, " = ((", wide_of(p),
                    "*)shared)[tx];\nfor (int y = 1; y < ", down, "; ++y) a", id, " = ", how, "()(a", id, ", ((", wide_of(p),
                    "*)shared)[y * 32 + tx]);\nconst ", register_type(value(id).dtype), " v", id, " = narrow<",
                    stored_type(value(id).dtype), ">(a", id, ");\n");
      (p.scalar ? row.known : frame.known)[id] = str("v", id);
    }
    std::vector<std::pair<std::size_t, std::string>> stores;
    for (std::size_t o = 0; o < body_.outputs.size(); ++o)
      if (extent(body_.outputs[o].value) == Extent::kColumn)
        stores.emplace_back(o, element_value(body_.outputs[o].value, frame));
    for (const auto& [o, reg] : stores) store(o, reg, frame, "");
    work_.launch(divided_up(division_.columns, kSweepAcross), kSweepAcross * down, params(),
                 str("__shared__ long long shared[", kSweepAcross * down,
                     "];\n(void)shared;\nconst int tx = threadIdx.x % 32, ty = threadIdx.x / 32;\nconst unsigned c = "
                     "blockIdx.x * 32 + tx;\n",
                     sums, "if (c >= ", division_.columns, " || ty != 0) return;\n", row.text, text_of(frame)));
  }

  void scalar_results() {
    RowFrame row;
    std::string sums, stores;
    for (const Partial& p : partials_) {
      if (!p.scalar) continue;
      sums += scalar_sum(p, kSweepThreads);
      row.known[p.instr->outputs[0]] = str("v", p.instr->outputs[0]);
    }
    for (std::size_t o = 0; o < body_.outputs.size(); ++o) {
      if (extent(body_.outputs[o].value) != Extent::kScalar) continue;
      const std::size_t k = operands() + o;
      stores +=
          str("x", k, "[0] = put<", stored_type(view(k).dtype), ">(", row_value(body_.outputs[o].value, row), ");\n");
    }
    work_.launch(1, kSweepThreads, params(),
                 str("__shared__ long long shared[32];\n(void)shared;\nconst unsigned r = 0;\n(void)r;\n", sums,
                     "if (threadIdx.x != 0) return;\n", row.text, stores));
  }

  const Work& work_;
  const Program& body_;
  const RowPlan plan_;
  const std::vector<Dim> rows_, columns_;
  Division division_;
  std::vector<Run> row_runs_, column_runs_;
  std::map<ValueId, std::size_t> operand_of_;
  std::map<ValueId, const Instr*> maker_;
  std::vector<Partial> partials_;
  std::map<std::pair<ValueId, std::string>, std::pair<std::string, std::int64_t>> begins_;
  std::map<ValueId, int> levels_;
  RowRegisters registers_;
};

}  // namespace

void sweep(const Work& work, const Program& body) { Sweep(work, body).run(); }

std::int64_t sweep_bytes(const Program& body) {
  const std::optional<RowPlan> plan = row_plan(body);
  std::int64_t rows = 1, columns = 1, bytes = 0;
  for (const Dim& dim : plan->rows) rows *= dim.size;
  for (const Dim& dim : plan->cols) columns *= dim.size;
  const Division least(rows, columns, 1);
  for (const Instr& instr : body.body) {
    const ValueId id = instr.outputs[0];
    if (!instr.is<ReduceDims>() || !plan->late[id]) continue;
    bytes += card_aligned(Sweep::partial_count(least, plan->whole_rows, plan->extents[id] == Extent::kScalar) *
                          static_cast<std::int64_t>(wide_size(body.values[id].dtype)));
  }
  return bytes;
}

Program body_of_one(const Program& program, const Instr& instr) {
  Program body;
  body.mesh = program.mesh;
  Instr inner = instr;
  for (std::size_t i = 0; i < instr.inputs.size(); ++i) {
    inner.inputs[i] = body.values.add(program.values[instr.inputs[i]]);
    body.inputs.push_back({str("in", i), inner.inputs[i]});
  }
  inner.outputs[0] = body.values.add(program.values[instr.outputs[0]]);
  body.outputs.push_back({"out0", inner.outputs[0]});
  body.body.push_back(std::move(inner));
  return body;
}

bool can_sweep(const Program& body) { return row_plan(body).has_value(); }

void copy_elements(const Work& work, const TensorView& from, const TensorView& to) {
  if (from.data == to.data && from.shape == to.shape && from.strides == to.strides) return;
  Program body;
  body.mesh = work.program.mesh;
  const ValueId source = body.values.add({"from", from.dtype, from.shape, {}}),
                target = body.values.add({"to", to.dtype, to.shape, {}});
  body.inputs.push_back({"in0", source});
  body.outputs.push_back({"out0", target});
  Map identity;
  identity.nodes = {{.op = "input", .dtype = from.dtype}};
  body.body.push_back({identity, {source}, {target}, {}});
  sweep(work.with({from}, {to}), body);
}

}  // namespace weft::cuda

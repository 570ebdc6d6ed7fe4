#include "runtime/cuda/program.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "base/index.h"
#include "base/str.h"
#include "comm/failure.h"
#include "program/builder.h"
#include "program/cost.h"
#include "runtime/cuda/attend.h"
#include "runtime/cuda/collectives.h"
#include "runtime/cuda/few_rows.h"
#include "runtime/cuda/hazards.h"
#include "runtime/cuda/instructions.h"
#include "runtime/cuda/nccl_collectives.h"
#include "runtime/cuda/products.h"
#include "runtime/cuda/sweep.h"
#include "runtime/cuda/table.h"
#include "runtime/host/checks.h"
#include "runtime/host/host_clock.h"
#include "runtime/host/place_values.h"
#include "runtime/host/strided.h"
#include "runtime/processor_names.h"
#include "weft/error.h"

namespace weft::cuda {

namespace {

constexpr std::int64_t kMostStarted = 64;  // steps on the stream that nobody has waited for

}  // namespace

// An instruction of a block with its work, for all processors.
struct CudaProgram::Step : RunInstr {
  std::vector<Issue> issues = {};
  std::unique_ptr<Block> body = {};          // of a loop
  std::vector<Issue> first = {}, next = {};  // moves of a loop: before the first trip, after each trip
  std::vector<Issue> poison = {};            // afterwards, in a poisoned run
  std::vector<std::int64_t*> iterations = {};
  const bool* stop = nullptr;
  std::int64_t trips = 0;
  std::vector<std::pair<std::string, TensorView>> checked = {};  // results that a checked run looks at
  std::vector<std::pair<TensorView, TensorView>> ids = {};       // tables and ids
  Print* print = nullptr;
  std::int64_t number = 0;
  Touched touched = {};
  bool is_over_nccl = false;     // a collective with processors on other cards
  const Step* awaits = nullptr;  // of a done: the collective that it finishes

  // An update that nothing else in the step waits for but what writes over its operands.
  bool may_run_beside() const {
    return instr->origin.phase == Phase::kUpdate && (instr->is<Fused>() || instr->is<Map>());
  }
};

// A value for print() or a metric.
struct CudaProgram::Print {
  std::string what, text;
  TensorView from;  // dense, on the card
  Array value;
};

// The instructions of a program, or of a loop's body, with a place for every value on every processor.
class CudaProgram::Block {
 public:
  Block(CudaProgram& owner, const Program& program, const MemoryPlan& plan,
        const Indexed<ProcessorId, std::byte*>& arenas, const Indexed<ProcessorId, std::map<ValueId, void*>>& held)
      : owner_(owner), program_(program), views_(arenas.size()) {
    for (const ProcessorId p : owner.local()) views_[p] = place_values(program, plan, p, arenas[p], held[p]);
    bind(plan, arenas);
    for (const std::unique_ptr<Step>& step : steps_) {
      step->number = static_cast<std::int64_t>(owner.steps_.size());
      owner.steps_.push_back(step.get());
    }
  }

  const TensorView& view(ProcessorId processor, ValueId id) const { return views_[processor][id]; }
  bool stops_or_prints_inside() const {
    for (const std::unique_ptr<Step>& step : steps_)
      if (step->body && (step->stop || step->body->prints() || step->body->stops_or_prints_inside())) return true;
    return false;
  }
  bool prints() const {
    for (const std::unique_ptr<Step>& step : steps_)
      if (step->print) return true;
    return false;
  }
  std::int64_t launches() const {
    std::int64_t count = 0;
    for (const std::unique_ptr<Step>& step : steps_)
      count += static_cast<std::int64_t>(step->issues.size()) + (step->body ? step->trips * step->body->launches() : 0);
    return count;
  }

  // `in_loop`: values for the host are handed over at once, since the next trip writes over them.
  void issue(bool in_loop) const {
    for (const std::unique_ptr<Step>& step : steps_) {
      owner_.current_.store(step.get(), std::memory_order_relaxed);
      const std::size_t mark = owner_.log_ ? owner_.timeline_.begin(step->number) : 0;
      run(*step, in_loop);
      if (owner_.log_) owner_.timeline_.end(mark);
    }
  }

  // The same for a captured step, with the updates on a second stream, where they run beside products. Each waits for all
  // that stands before it; what stands behind it waits for it only if the two touch the same bytes. Collectives with other
  // cards run on a third stream, from where the program starts them to where it finishes them.
  void issue_beside(cudaStream_t beside) const {
    Fences fences;
    std::vector<std::pair<const Step*, cudaEvent_t>> running;
    std::map<const Step*, cudaEvent_t> talking;  // the ends of collectives
    bool is_behind = false;                      // the second stream has waited for all of the first so far
    for (const std::unique_ptr<Step>& step : steps_) {
      if (step->may_run_beside()) {
        if (!is_behind) fences.make_wait(beside, stream());
        is_behind = true;
        for (const Issue& issue : step->issues) issue(beside);
        running.emplace_back(step.get(), fences.record(beside));
        continue;
      }
      for (std::size_t i = running.size(); i-- > 0;) {
        if (!step->body && !conflict(running[i].first->touched, step->touched)) continue;
        fences.wait(stream(), running[i].second);
        running.erase(running.begin(), running.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        break;
      }
      if (step->is_over_nccl) start_collective(*step, fences, talking);
      else if (step->awaits) fences.wait(stream(), talking.at(step->awaits));
      else run(*step, false);
      is_behind = false;
    }
    if (!running.empty()) fences.wait(stream(), running.back().second);
  }

 private:
  // Events between two streams.
  class Fences {
   public:
    Fences() = default;
    Fences(const Fences&) = delete;
    Fences& operator=(const Fences&) = delete;
    ~Fences() {
      for (const cudaEvent_t event : events_) cudaEventDestroy(event);
    }
    cudaEvent_t record(cudaStream_t stream) {
      check(cudaEventCreateWithFlags(&events_.emplace_back(), cudaEventDisableTiming), "cudaEventCreateWithFlags");
      check(cudaEventRecord(events_.back(), stream), "cudaEventRecord");
      return events_.back();
    }
    static void wait(cudaStream_t stream, cudaEvent_t event) {
      check(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
    }
    void make_wait(cudaStream_t later, cudaStream_t first) { wait(later, record(first)); }

   private:
    std::vector<cudaEvent_t> events_;
  };

  cudaStream_t stream() const { return owner_.card_.stream(); }

  // Behind all that stands before it. What follows waits at the done; where there is none, at once.
  void start_collective(const Step& step, Fences& fences, std::map<const Step*, cudaEvent_t>& talking) const {
    const cudaStream_t talks = owner_.peers_->stream();
    fences.make_wait(talks, stream());
    for (const Issue& issue : step.issues) issue(talks);
    talking[&step] = fences.record(talks);
    const bool has_done =
        std::ranges::any_of(steps_, [&](const std::unique_ptr<Step>& other) { return other->awaits == &step; });
    if (!has_done) fences.wait(stream(), talking.at(&step));
  }

  static void note_touched(Step& step, const Work& work, const MemoryPlan& plan, int position, const std::byte* arena) {
    for (const TensorView& view : work.inputs) step.touched.reads.push_back(span_of(view));
    for (const TensorView& view : work.outputs) step.touched.writes.push_back(span_of(view));
    const auto found = plan.workspaces.find(position);
    if (found == plan.workspaces.end()) return;
    const Storage& storage = plan.storages[at(found->second)];
    step.touched.writes.push_back({arena + storage.offset, arena + storage.offset + storage.bytes});
  }

  std::function<void*(std::size_t)> workspace_of(const MemoryPlan& plan, int position, std::byte* arena) const {
    const auto found = plan.workspaces.find(position);
    const Storage storage = found == plan.workspaces.end() ? Storage{} : plan.storages[at(found->second)];
    auto used = std::make_shared<std::int64_t>(0);
    return [storage, used, begin = arena + storage.offset](std::size_t bytes) -> void* {
      std::byte* piece = begin + *used;
      *used += card_aligned(static_cast<std::int64_t>(bytes));
      internal_check(*used <= storage.bytes, "a kernel asks for more workspace than was planned");
      return piece;
    };
  }

  Work work_of(ProcessorId processor, const Instr& instr, std::function<void*(std::size_t)> workspace,
               std::vector<Issue>& issues) const {
    Work work{program_, instr, {}, {}, processor, std::move(workspace), owner_.card_, owner_.kernels_, issues};
    for (const ValueId id : instr.inputs) work.inputs.push_back(view(processor, id));
    for (const ValueId id : instr.outputs) work.outputs.push_back(view(processor, id));
    return work;
  }

  void bind(const MemoryPlan& plan, const Indexed<ProcessorId, std::byte*>& arenas) {
    const ByValue<std::vector<std::int64_t>> strides = strides_of(program_);
    std::map<ValueId, const Step*> started;  // collectives with other cards, by their first result
    int poisoned = -1;                       // see poison.h: up to this position
    int joined = -1;                         // the last instruction that is done together with one before it
    for (int i = 0; i < static_cast<int>(program_.body.size()); ++i) {
      const Instr& instr = program_.body[at(i)];
      if (is_view(instr)) continue;
      if (instr.is<Done>()) {
        if (const auto found = started.find(instr.inputs[0]); found != started.end()) {
          const Step& begun = *found->second;
          steps_.push_back(std::make_unique<Step>(Step{{&program_, begun.instr, true, begun.served_by}}));
          steps_.back()->awaits = &begun;
        }
        continue;
      }
      auto step = std::make_unique<Step>(
          Step{{&program_, &instr, false, served_by(program_, instr, strides, owner_.card_.deterministic())}});
      if (i <= joined) {
        // done with what stands before it
      } else if (const int last = attend_next(plan, i, arenas, *step); last > i) {
        joined = last;
      } else if (instr.is<DynamicUpdate>() && update_next(plan, i, arenas, *step)) {
        joined = next_of(i);
      } else if (instr.is<Contract>() && join_next(plan, i, arenas, *step)) {
        joined = next_of(i);
      } else if (instr.is<Loop>()) {
        bind_loop(*step, plan.loops.at(i), arenas);
      } else {
        std::vector<Work> works;
        for (const ProcessorId p : owner_.local())
          works.push_back(work_of(p, instr, workspace_of(plan, i, arenas[p]), step->issues));
        for (const Work& work : works) note_touched(*step, work, plan, i, arenas[work.processor]);
        if (is_collective(instr) && owner_.peers_) {
          nccl_collective(works[0], *owner_.peers_);
          step->is_over_nccl = true;
          started[instr.outputs[0]] = step.get();
        } else if (is_collective(instr)) collective(works);
        else if (instr.is<Host>()) bind_print(*step, works[0]);
        else
          for (const Work& work : works) instruction_named(name_of(instr))(work);
      }
      note_checks(*step, instr);
      if (owner_.poisons_ && i >= joined) add_poison(*step, plan, std::exchange(poisoned, i), i, arenas);
      steps_.push_back(std::move(step));
    }
  }

  void add_poison(Step& step, const MemoryPlan& plan, int before, int position,
                  const Indexed<ProcessorId, std::byte*>& arenas) const {
    for (const Storage& dead : dead_storages(plan, before, position, static_cast<int>(program_.body.size())))
      for (const ProcessorId p : owner_.local())
        step.poison.emplace_back([begin = arenas[p] + dead.offset, bytes = dead.bytes](cudaStream_t stream) {
          check(cudaMemsetAsync(begin, 0xff, static_cast<std::size_t>(bytes), stream), "cudaMemsetAsync");
        });
  }

  // The next instruction with work of its own; -1 if there is none.
  int next_of(int position) const {
    for (int i = position + 1; i < static_cast<int>(program_.body.size()); ++i) {
      const Instr& instr = program_.body[at(i)];
      if (instr.is<Done>() && owner_.peers_) return -1;  // what follows may need the results of a collective
      if (!is_view(instr) && !instr.is<Done>()) return i;
    }
    return -1;
  }

  // Whether the program reads a value at one place alone, in that instruction.
  bool is_only_read_by(ValueId id, int position) const {
    for (int i = 0; i < static_cast<int>(program_.body.size()); ++i)
      if (i != position && std::ranges::count(program_.body[at(i)].inputs, id) > 0) return false;
    for (const ProgramOutput& output : program_.outputs)
      if (output.value == id) return false;
    return std::ranges::none_of(program_.variables, [&](const ProgramVariable& v) { return v.update == id; });
  }

  // A product of few rows with the maps that alone read it, if they follow it. Else nothing is done.
  bool join_next(const MemoryPlan& plan, int position, const Indexed<ProcessorId, std::byte*>& arenas, Step& step) {
    const int next = next_of(position);
    const Instr& product = program_.body[at(position)];
    if (next < 0 || owner_.checks_.finite || !is_only_read_by(product.outputs[0], next)) return false;
    std::vector<Work> works;
    std::vector<Epilogue> epilogues;
    for (const ProcessorId p : owner_.local()) {
      works.push_back(work_of(p, product, workspace_of(plan, position, arenas[p]), step.issues));
      const Work then = work_of(p, program_.body[at(next)], {}, step.issues);
      std::optional<Epilogue> epilogue;
      if (is_few_rows_product(works.back())) epilogue = epilogue_of(works.back(), then);
      if (!epilogue) return false;
      epilogues.push_back(std::move(*epilogue));
      note_touched(step, works.back(), plan, position, arenas[p]);
      note_touched(step, then, plan, next, arenas[p]);
    }
    for (std::size_t i = 0; i < works.size(); ++i) few_rows_product(works[i], &epilogues[i]);
    return true;
  }

  // Two updates in place with the attention that reads what they write: the position of the attention; else nothing is
  // done.
  int attend_next(const MemoryPlan& plan, int position, const Indexed<ProcessorId, std::byte*>& arenas, Step& step) {
    if (owner_.local().size() != 1 || owner_.checks_.finite || !program_.body[at(position)].is<DynamicUpdate>())
      return -1;
    const std::array<int, 3> positions = {position, next_of(position), next_of(next_of(position))};
    if (positions[1] < 0 || positions[2] < 0 || !program_.body[at(positions[1])].is<DynamicUpdate>() ||
        !program_.body[at(positions[2])].is<Attend>())
      return -1;
    const ProcessorId p = owner_.local()[0];
    std::vector<Work> works;
    for (const int i : positions) works.push_back(work_of(p, program_.body[at(i)], {}, step.issues));
    if (!attend_step(works[2], works[0], works[1])) return -1;
    for (std::size_t i = 0; i < works.size(); ++i) note_touched(step, works[i], plan, positions[i], arenas[p]);
    return positions[2];
  }

  // An update in place with the one that follows it: keys with values. Else nothing is done.
  bool update_next(const MemoryPlan& plan, int position, const Indexed<ProcessorId, std::byte*>& arenas, Step& step) {
    const int next = next_of(position);
    if (next < 0 || owner_.local().size() != 1 || owner_.checks_.finite || !program_.body[at(next)].is<DynamicUpdate>())
      return false;
    const ProcessorId p = owner_.local()[0];
    const Work one = work_of(p, program_.body[at(position)], {}, step.issues),
               other = work_of(p, program_.body[at(next)], {}, step.issues);
    if (!dynamic_updates(one, other)) return false;
    note_touched(step, one, plan, position, arenas[p]);
    note_touched(step, other, plan, next, arenas[p]);
    return true;
  }

  void bind_print(Step& step, const Work& work) {
    const auto& operation = *work.instr.as<Host>();
    auto print = std::make_unique<Print>(
        Print{operation.what, operation.text, work.inputs[0], Array(work.inputs[0].shape, work.inputs[0].dtype)});
    step.print = print.get();
    owner_.prints_.push_back(std::move(print));
  }

  void note_checks(Step& step, const Instr& instr) const {
    for (const ProcessorId p : owner_.local()) {
      if (owner_.checks_.finite)
        for (const ValueId id : instr.outputs) step.checked.emplace_back(program_.values[id].name, view(p, id));
      if (owner_.checks_.ids && looks_up_ids(instr))
        step.ids.emplace_back(view(p, instr.inputs[0]), view(p, instr.inputs[1]));
    }
  }

  // The carried values lie where the loop's outputs do; what the body writes elsewhere is moved there after each trip.
  void bind_loop(Step& step, const MemoryPlan::Inner& inner, const Indexed<ProcessorId, std::byte*>& arenas) {
    const Instr& instr = *step.instr;
    const Loop& loop = *instr.as<Loop>();
    const Program& body = *loop.body;
    const MemoryPlan& plan = inner.plan[0];
    const std::size_t carried = instr.outputs.size();
    Indexed<ProcessorId, std::byte*> inside(arenas.size());
    Indexed<ProcessorId, std::map<ValueId, void*>> held(arenas.size());
    for (const ProcessorId p : owner_.local()) {
      inside[p] = arenas[p] + inner.offset;
      for (std::size_t i = 0; i < instr.inputs.size(); ++i)
        held[p][body.inputs[i + 1].value] = view(p, i < carried ? instr.outputs[i] : instr.inputs[i]).data;
      const Work work = work_of(p, instr, {}, step.first);
      for (std::size_t k = 0; k < carried; ++k)
        copy_elements(work, view(p, instr.inputs[k]), view(p, instr.outputs[k]));
    }
    step.body = std::make_unique<Block>(owner_, body, plan, inside, held);
    for (const ProcessorId p : owner_.local()) {
      const Work work = work_of(p, instr, {}, step.next);
      for (const auto& [k, how] : plan.moves) {
        using How = MemoryPlan::Move::How;
        const TensorView &made = step.body->view(p, body.outputs[k].value), &place = view(p, instr.outputs[k]);
        const auto saved = [&] {
          return dense_view(inside[p] + plan.storages[at(plan.ring_storage)].offset, place.dtype, place.shape);
        };
        copy_elements(work, how == How::kPlaceSaved ? saved() : made, how == How::kSave ? saved() : place);
      }
      step.iterations.push_back(static_cast<std::int64_t*>(step.body->view(p, body.inputs[0].value).data));
    }
    step.trips = loop.trips;
    if (loop.stops)
      step.stop = static_cast<const bool*>(step.body->view(owner_.local()[0], body.outputs.back().value).data);
  }

  // The number of a trip goes to the card by kernels: a captured trip has its own.
  void set_iteration(const Step& step, std::int64_t i) const {
    for (std::int64_t* place : step.iterations) {
      check(cudaMemsetAsync(place, 0, sizeof *place, stream()), "cudaMemsetAsync");
      for (std::size_t byte = 0; byte < 3; ++byte)  // kMostTrips fits
        if (const int value = static_cast<int>(i >> (8 * byte) & 255))
          check(cudaMemsetAsync(reinterpret_cast<std::byte*>(place) + byte, value, 1, stream()), "cudaMemsetAsync");
    }
  }

  void run(const Step& step, bool in_loop) const {
    for (const auto& [table, ids] : step.ids) check_ids(step, table, ids);
    for (const Issue& issue : step.issues) issue(stream());
    if (step.body) run_loop(step);
    if (step.print && in_loop) owner_.hand_over(*step.print);
    for (const auto& [name, result] : step.checked) check_finite(name, result);
    for (const Issue& issue : step.poison) issue(stream());
  }

  void run_loop(const Step& step) const {
    for (const Issue& issue : step.first) issue(stream());
    for (std::int64_t i = 0; i < step.trips; ++i) {
      set_iteration(step, i);
      step.body->issue(true);
      bool stops = false;
      if (step.stop) {
        owner_.wait_for_peers();
        check(cudaMemcpyAsync(&stops, step.stop, sizeof stops, cudaMemcpyDeviceToHost, stream()), "cudaMemcpyAsync");
        check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
      }
      for (const Issue& issue : step.next) issue(stream());
      if (stops) break;
    }
    owner_.current_.store(&step, std::memory_order_relaxed);
  }

 public:
  // All memory that a view spans, on the host.
  struct HostCopy {
    std::vector<std::byte> bytes;
    TensorView view;
    HostCopy(const TensorView& from, cudaStream_t stream) : view(from) {
      std::int64_t span = 1;
      for (std::size_t d = 0; d < from.shape.rank(); ++d) span += (from.shape[d].size - 1) * from.strides[d];
      bytes.resize(static_cast<std::size_t>(span) * size_of(from.dtype));
      check(cudaMemcpyAsync(bytes.data(), from.data, bytes.size(), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
      check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
      view.data = bytes.data();
    }
  };

 private:
  void check_ids(const Step& step, const TensorView& table, const TensorView& ids) const {
    owner_.wait_for_peers();
    const HostCopy copied(ids, stream());
    const std::string found = id_out_of_range(table, copied.view, step.instr->as<Gather>()->dim);
    if (!found.empty()) throw RunError({.code = "run.id-out-of-range", .what = found, .where = "", .fix = ""});
  }

  void check_finite(const std::string& name, const TensorView& result) const {
    if (!is_float(result.dtype)) return;
    owner_.wait_for_peers();
    const HostCopy copied(result, stream());
    const std::string found = not_finite(copied.view);
    if (!found.empty())
      throw RunError({.code = "run.not-finite", .what = str("'", name, "' has ", found), .where = "", .fix = ""});
  }

  CudaProgram& owner_;
  const Program& program_;
  Indexed<ProcessorId, ByValue<TensorView>> views_;
  std::vector<std::unique_ptr<Step>> steps_;
};

CudaProgram::CudaProgram(std::shared_ptr<const Compiled> compiled, Card& card, const Places& places,
                         const Checks& checks, Peers* peers)
    : compiled_(std::move(compiled)),
      card_(card),
      checks_(checks),
      local_(places.local),
      peers_(peers),
      saved_outputs_(at(program().mesh.size())) {
  Indexed<ProcessorId, std::map<ValueId, void*>> held(at(program().mesh.size()));
  for (const ProcessorId p : local())
    for (std::size_t v = 0; v < program().variables.size(); ++v)
      held[p][program().variables[v].value] = places.variables[p].at(v);
  block_ = std::make_unique<Block>(*this, program(), compiled_->plan, places.arenas, held);
  bind_updates(places);
  visit_bodies(program(), [&](const Program& body, std::int64_t) {
    for (const Instr& instr : body.body) draws_ = draws_ || instr.is<Random>();
  });
  kernels_.compile(card_.architecture());
  check(cudaMallocHost(reinterpret_cast<void**>(&words_), kMostStarted * sizeof(StepWords)), "cudaMallocHost");
}

CudaProgram::~CudaProgram() {
  if (peers_) peers_->drains(card_.stream());
  else cudaStreamSynchronize(card_.stream());
  drop_graph();
  if (words_) cudaFreeHost(words_);
}

// What the plan saves is saved before any variable is written: updates and outputs are of old contents.
void CudaProgram::bind_updates(const Places& places) {
  const MemoryPlan& plan = compiled_->plan;
  const Instr none{Copy{}, {}, {}, {}};
  std::vector<Issue> commits;
  for (const ProcessorId p : local()) {
    const Work saves{program(), none, {}, {}, p, {}, card_, kernels_, commits_};
    const Work updates{program(), none, {}, {}, p, {}, card_, kernels_, commits};
    std::map<ValueId, TensorView> saved;
    for (const auto& [id, storage] : plan.saved_views) {
      const TensorView& from = block_->view(p, id);
      std::byte* place = places.arenas[p] + plan.storages[at(storage)].offset;
      saved[id] = dense_view(place, from.dtype, from.shape);
      copy_elements(saves, from, saved[id]);
    }
    const auto contents = [&](ValueId id) { return saved.contains(id) ? saved.at(id) : block_->view(p, id); };
    for (const ProgramVariable& variable : program().variables)
      if (variable.update && *variable.update != variable.value)
        copy_elements(updates, contents(*variable.update), block_->view(p, variable.value));
    for (const ProgramOutput& output : program().outputs)
      if (saved.contains(output.value)) saved_outputs_[p][output.value] = saved.at(output.value).data;
  }
  commits_.insert(commits_.end(), commits.begin(), commits.end());
}

void* CudaProgram::input(ProcessorId processor, std::size_t i) const {
  return block_->view(processor, program().inputs[i].value).data;
}

void* CudaProgram::output(ProcessorId processor, std::size_t i) const {
  const ValueId id = program().outputs[i].value;
  const auto& saved = saved_outputs_[processor];
  const auto found = saved.find(id);
  return found != saved.end() ? found->second : block_->view(processor, id).data;
}

// A step is captured once and launched as one graph, unless the host has a part in it.
bool CudaProgram::can_capture() const {
  constexpr std::int64_t kMostNodes = 100'000;
  return !checks_.finite && !checks_.ids && !block_->stops_or_prints_inside() &&
         block_->launches() * static_cast<std::int64_t>(local().size()) <= kMostNodes;
}

void CudaProgram::issue_all() {
  block_->issue(false);
  for (const Issue& commit : commits_) commit(card_.stream());
}

void CudaProgram::issue_traced() {
  timeline_.start(card_.stream());
  const std::size_t whole = timeline_.begin(TraceRecord::kProgram);
  issue_all();
  timeline_.end(whole);
}

void CudaProgram::capture() {
  tried_capture_ = true;
  if (!can_capture()) return;
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(card_.stream(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  if (kernels_.overlaps() || poisons_) block_->issue(false);
  else block_->issue_beside(card_.second_stream());
  for (const Issue& commit : commits_) commit(card_.stream());
  check(cudaStreamEndCapture(card_.stream(), &graph), "cudaStreamEndCapture");
  const cudaError_t status = cudaGraphInstantiate(&graph_, graph, 0);
  cudaGraphDestroy(graph);
  check(status, "cudaGraphInstantiate");
}

void CudaProgram::start(const StepArgs& step) {
  card_.use();
  host_ = step.host;
  deadline_ = step.deadline;
  StepWords* words = words_ + started_ % kMostStarted;
  log_ = trace_ && trace_->covers(step.step) ? trace_ : nullptr;
  if (log_) log_->enter(step.step);
  try {
    if (peers_) peers_->check();
    if (started_ > 0 && started_ % kMostStarted == 0) {  // the card may not have read the words yet
      wait_for_peers();
      check(cudaStreamSynchronize(card_.stream()), "cudaStreamSynchronize");
    }
    ++started_;
    *words = {step.seed, step.step, 0};
    if (draws_)
      check(cudaMemcpyAsync(card_.step_words(), words, sizeof(StepWords), cudaMemcpyHostToDevice, card_.stream()),
            "cudaMemcpyAsync");
    if (log_) return issue_traced();
    if (!tried_capture_) capture();
    if (graph_) check(cudaGraphLaunch(graph_, card_.stream()), "cudaGraphLaunch");
    else issue_all();
  } catch (const comm::FailureError&) {
    drop_graph();
    throw;
  } catch (const Error& error) {
    fail(error.text().what);
  }
}

void CudaProgram::wait() {
  try {
    started_ = 0;
    wait_for_peers();
    check(cudaStreamSynchronize(card_.stream()), "cudaStreamSynchronize");
    current_.store(nullptr, std::memory_order_relaxed);
    if (TraceLog* log = std::exchange(log_, nullptr)) timeline_.write(*log);
    for (const Step* step : steps_)
      if (step->print && step->program == &program()) hand_over(*step->print);
    host_ = {};  // it may own the session that owns this program
  } catch (const comm::FailureError&) {
    host_ = {};
    drop_graph();
    throw;
  } catch (const Error& error) {
    fail(error.text().what);
  }
}

void CudaProgram::hand_over(Print& print) const {
  if (!host_) return;
  const Block::HostCopy copied(print.from, card_.stream());
  weft::copy_elements(copied.view, dense_view(print.value.bytes(), copied.view.dtype, copied.view.shape));
  host_({print.what, print.text, print.value});
}

// Collectives with other cards may hang: before the host waits for the card, it waits for them, until the deadline.
void CudaProgram::wait_for_peers() const {
  if (peers_) peers_->wait(card_.stream(), deadline_);
}

// NCCL lets go of its memory only when the graphs that hold its collectives are gone. A graph that still runs is kept.
void CudaProgram::drop_graph() {
  if (graph_ && (!peers_ || peers_->drains(card_.stream()))) cudaGraphExecDestroy(graph_);
  graph_ = nullptr;
}

void CudaProgram::fail(const std::string& cause) {
  host_ = {};
  const Step* step = current_.load();
  comm::Failure failure{.kind = comm::Failure::Kind::kInstruction, .processor = local()[0], .cause = cause};
  if (step) {
    failure.instruction = name_of(*step->instr);
    failure.tensor = step->tensor();
    failure.lines = step->lines();
  }
  throw comm::FailureError(std::move(failure), {}, processor_names(program().mesh));
}

std::string CudaProgram::doing() const {
  const Step* step = current_.load();
  return step ? str(step->name_and_tensor(), ", ", step->lines()) : "";
}

std::vector<RunInstr> CudaProgram::instructions() const {
  std::vector<RunInstr> all;
  for (const Step* step : steps_) all.push_back(*step);
  return all;
}

}  // namespace weft::cuda

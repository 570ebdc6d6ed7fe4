// From a checkpoint into a session.
#include <algorithm>
#include <set>

#include "train/checkpoint_data.h"
#include "train/checkpoint_files.h"
#include "weft/detail/session_access.h"
#include "weft/error.h"

namespace weft {

namespace {

using checkpoint::sentence;
using Numbers = std::vector<std::int64_t>;

// One variable of the session: where it is in the checkpoint, and its pieces in this process.
struct Filled {
  std::string source;
  std::vector<detail::VariableShard> shards;
};

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 10;
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) out += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kMost ? sentence(out, ", … (", names.size(), " in all)") : out;
}

class Loader {
 public:
  Loader(const Checkpoint::Data& data, Session& session, const Checkpoint::LoadOptions& options)
      : data_(data), session_(session), options_(options) {}

  void load() {
    plan();
    if (options_.verify) verify();
    for (const Filled& variable : plan_) fill(variable);
  }

 private:
  void plan() {
    std::vector<std::string> missing;
    for (detail::VariableShard& shard : detail::shards(session_)) {
      if (!options_.optimizer_state && !shard.slot_of.empty()) continue;
      if (plan_.empty() || plan_.back().shards[0].variable != shard.variable) {
        const auto [source, rule] = source_of(shard);
        if (!data_.index.variables.contains(source)) {
          if (missing.empty() || missing.back() != source) missing.push_back(source);
          continue;
        }
        check_fit(source, shard);
        fitting_.insert(rule);
        plan_.push_back({source, {}});
      }
      plan_.back().shards.push_back(std::move(shard));
    }
    if (!missing.empty() && !options_.allow_missing)
      throw UserError({.code = "checkpoint.missing-variables",
                       .what = sentence("the checkpoint lacks variables that the session has: ", listed(missing)),
                       .where = data_.path,
                       .fix = "load it into the model that wrote it, give other names with rename (--rename OLD=NEW), "
                              "leave out optimizer_state, or set allow_missing (--allow-missing) to keep their first "
                              "values"});
    check_rules();
    if (!options_.allow_unused) check_used();
  }

  // The variable's name in the checkpoint, and the rule that says so; as many as there are rules if none does.
  std::pair<std::string, std::size_t> source_of(const detail::VariableShard& shard) const {
    const std::string& name = shard.variable;
    const auto& rules = options_.rename;
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const auto& [from, to] = rules[i];
      const bool is_begin = to.ends_with("/") && name.starts_with(to);
      const bool is_slot = shard.slot_of == to && name.starts_with(to + ".");
      if (name == to || is_begin || is_slot) return {from + name.substr(to.size()), i};
    }
    return {name, rules.size()};
  }

  void check_rules() const {
    for (std::size_t i = 0; i < options_.rename.size(); ++i)
      if (const auto& [from, to] = options_.rename[i]; !fitting_.contains(i))
        throw UserError(
            {.code = "checkpoint.rename-of-nothing",
             .what = sentence("nothing is renamed from '", from, "' in the checkpoint to '", to, "' in the session"),
             .where = data_.path,
             .fix = "give whole names of variables, or beginnings that end in \"/\" on both sides; see its "
                    "index.json"});
  }

  void check_fit(const std::string& source, const detail::VariableShard& shard) const {
    const CheckpointVariable& stored = data_.index.variables.at(source).variable;
    const bool is_castable = is_float(stored.dtype) && is_float(shard.dtype);
    if (!same_dims(stored.shape, shard.whole) || (stored.dtype != shard.dtype && !is_castable))
      throw UserError({.code = "checkpoint.variable-mismatch",
                       .what = sentence("variable '", shard.variable, "' is ", shard.dtype, " ", shard.whole,
                                        " in the session, but ", stored.dtype, " ", stored.shape, " in the checkpoint"),
                       .where = data_.path,
                       .fix = "build the model with the sizes of the checkpoint; see its index.json"});
  }

  void check_used() const {
    std::set<std::string> used;
    for (const Filled& variable : plan_) used.insert(variable.source);
    std::vector<std::string> unused;
    for (const auto& [name, about] : data_.variables)
      if (about.slot_of.empty() && !used.contains(name)) unused.push_back(name);
    if (unused.empty()) return;
    throw UserError({.code = "checkpoint.unused-weights",
                     .what = sentence("the checkpoint has weights that the session lacks: ", listed(unused)),
                     .where = data_.path,
                     .fix = "load it into the model that wrote it, after compiling, or set allow_unused "
                            "(--allow-unused) to leave them out"});
  }

  // Every piece that nobody reads whole is read by one process for its checksum. Who reads what is only known of this
  // process, so pieces that others read whole may be read once more.
  void verify() const {
    const std::vector<ProcessorId>& here = detail::processors(session_);
    int next = 0;
    for (const Filled& variable : plan_)
      for (const checkpoint::Piece& piece : data_.index.variables.at(variable.source).pieces) {
        const ProcessorId owner(next++ % session_.mesh().size());
        if (std::find(here.begin(), here.end(), owner) != here.end() && !is_read_whole(variable, piece))
          data_.verify(variable.source, piece);
      }
  }

  bool is_read_whole(const Filled& variable, const checkpoint::Piece& piece) const {
    return std::any_of(variable.shards.begin(), variable.shards.end(), [&](const detail::VariableShard& shard) {
      const auto [begin, sizes] = box_of(variable, shard);
      bool is_inside = true;
      for (std::size_t d = 0; d < begin.size(); ++d)
        is_inside &= begin[d] <= piece.begin[d] && piece.begin[d] + piece.sizes[d] <= begin[d] + sizes[d];
      return is_inside;
    });
  }

  // The shard's begin and sizes in the checkpoint's order of dims.
  std::pair<Numbers, Numbers> box_of(const Filled& variable, const detail::VariableShard& shard) const {
    Numbers begin, sizes;
    for (const Dim& dim : data_.index.variables.at(variable.source).variable.shape) {
      const std::size_t d = shard.whole.position(dim.name);
      begin.push_back(shard.begin[d]);
      sizes.push_back(shard.sizes[d]);
    }
    return {begin, sizes};
  }

  void fill(const Filled& variable) {
    const CheckpointVariable& stored = data_.index.variables.at(variable.source).variable;
    std::map<Numbers, std::vector<const detail::VariableShard*>> by_begin;  // replicas are read once
    for (const detail::VariableShard& shard : variable.shards) by_begin[shard.begin].push_back(&shard);
    for (const auto& [place, shards] : by_begin) {
      const auto [begin, sizes] = box_of(variable, *shards[0]);
      std::vector<Dim> dims, wanted;
      for (std::size_t d = 0; d < sizes.size(); ++d) dims.push_back({stored.shape[d].name, sizes[d]});
      for (std::size_t d = 0; d < sizes.size(); ++d) wanted.push_back({shards[0]->whole[d].name, shards[0]->sizes[d]});
      Array part{Shape(dims), stored.dtype};
      const std::size_t bytes = static_cast<std::size_t>(part.elements()) * size_of(stored.dtype);
      data_.read(variable.source, begin, sizes, {part.bytes(), bytes});
      if (dims != wanted) part = part.transposed(Shape(wanted));
      if (stored.dtype != shards[0]->dtype) part = part.cast(shards[0]->dtype);
      for (const detail::VariableShard* shard : shards)
        detail::write_shard(session_, *shard, {part.bytes(), shard->bytes()});
    }
  }

  const Checkpoint::Data& data_;
  Session& session_;
  const Checkpoint::LoadOptions& options_;
  std::vector<Filled> plan_;
  std::set<std::size_t> fitting_;  // rules that fit a variable on both sides
};

}  // namespace

void Checkpoint::load(Session& session, const LoadOptions& options) const {
  std::exception_ptr error;
  try {
    Loader(*data_, session, options).load();
  } catch (...) {
    error = std::current_exception();
  }
  detail::agree(session, error, "to load a checkpoint");
}

}  // namespace weft

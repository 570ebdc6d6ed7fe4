// Reads machine descriptions. Every value is checked where it is taken; a key that nobody has taken is an error.
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>

#include "base/str.h"
#include "machine/shipped.h"
#include "weft/detail/words.h"
#include "weft/error.h"
#include "weft/machine.h"

namespace weft {

namespace {

constexpr double kLeast = 1e-12, kMost = 1e30;  // of every number but counts
constexpr const char* kSee = "see docs/machines.md, or machines/h200x8.toml for a complete one";

// One table of the description: what is taken from it, and the keys that it may have.
class Section {
 public:
  Section(const toml::table& table, std::string name, std::string origin)
      : table_(table), name_(std::move(name)), origin_(std::move(origin)) {}

  std::string where(const toml::node& node) const { return str(origin_, ":", node.source().begin.line); }
  std::string where() const { return where(table_); }
  const std::string& name() const { return name_; }

  const toml::node* find(const std::string& key) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
    return table_.get(key);
  }
  const toml::node& need(const std::string& key) {
    if (const toml::node* node = find(key)) return *node;
    throw UserError({.code = "machine.missing-key",
                     .what = str("the machine description has no '", full(key), "'"),
                     .where = where(),
                     .fix = str("add it; ", kSee)});
  }

  [[noreturn]] void refuse(const std::string& key, const toml::node& node, const std::string& wanted) const {
    std::ostringstream given;
    node.visit([&](const auto& n) { given << n; });
    throw UserError({.code = "machine.wrong-value",
                     .what = str("'", full(key), "' is ", wanted, ", but it was given ", given.str()),
                     .where = where(node),
                     .fix = kSee});
  }

  double number(const std::string& key, std::optional<double> otherwise = {}) {
    const toml::node* node = otherwise ? find(key) : &need(key);
    return node ? positive(key, *node) : *otherwise;
  }
  // Zero is allowed.
  double seconds(const std::string& key) {
    const toml::node* node = find(key);
    return !node || node->value<double>() == 0.0 ? 0 : positive(key, *node, "0, or ");
  }
  int count(const std::string& key, std::optional<int> otherwise = {}) {
    const toml::node* node = otherwise ? find(key) : &need(key);
    return node ? whole(key, *node) : *otherwise;
  }
  bool flag(const std::string& key, bool otherwise) {
    const toml::node* node = find(key);
    if (!node) return otherwise;
    const auto value = node->value_exact<bool>();
    if (!value) refuse(key, *node, "true or false");
    return *value;
  }
  double share(const std::string& key, double otherwise) {
    const toml::node* node = find(key);
    if (!node) return otherwise;
    const auto value = node->value<double>();
    if (!node->is_number() || !value || !(*value >= 0 && *value <= 1)) refuse(key, *node, "a number from 0 to 1");
    return *value;
  }
  std::string word(const std::string& key) {
    const toml::node& node = need(key);
    const auto value = node.value_exact<std::string>();
    if (!value) refuse(key, node, "a text in quotes");
    return *value;
  }
  std::vector<double> numbers(const std::string& key) {
    const toml::node& node = need(key);
    std::vector<double> all;
    for (const toml::node& item : list(key, node)) all.push_back(positive(key, item));
    return all;
  }
  std::vector<int> counts(const std::string& key) {
    const toml::node& node = need(key);
    std::vector<int> all;
    for (const toml::node& item : list(key, node)) all.push_back(whole(key, item));
    return all;
  }
  // Sizes of an axis of a grid.
  std::vector<double> axis(const std::string& key) {
    const std::vector<double> sizes = numbers(key);
    if (std::adjacent_find(sizes.begin(), sizes.end(), std::greater_equal<>()) != sizes.end())
      refuse(key, need(key), "a list of sizes in ascending order");
    return sizes;
  }
  Table grid(const std::string& key, std::vector<std::vector<double>> axes) {
    Table table{std::move(axes), numbers(key)};
    std::size_t points = 1;
    for (const std::vector<double>& one : table.axes) points *= one.size();
    if (table.values.size() != points)
      throw UserError({.code = "machine.bad-table",
                       .what = str("'", full(key), "' has ", table.values.size(), " numbers for ", points, " points"),
                       .where = where(need(key)),
                       .fix = "give one number for every combination of the sizes, the last size changing fastest"});
    return table;
  }

  // The tables of [[key]], and of [key].
  std::vector<Section> sections(const std::string& key) {
    std::vector<Section> all;
    const toml::node* node = find(key);
    if (!node) return all;
    if (const toml::table* one = node->as_table()) {
      all.emplace_back(*one, full(key), origin_);
      return all;
    }
    for (const toml::node& item : list(key, *node)) {
      if (!item.is_table()) refuse(key, *node, "a list of tables");
      all.emplace_back(*item.as_table(), full(key), origin_);
    }
    return all;
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> all;
    for (const auto& [key, node] : table_) all.emplace_back(key.str());
    return all;
  }

  void check_all_known() const {
    for (const auto& [key, node] : table_) {
      const std::string word(key.str());
      if (std::find(known_.begin(), known_.end(), word) != known_.end()) continue;
      const std::string near = nearest_word(word, known_);
      throw UserError(
          {.code = "machine.unknown-key",
           .what = str("a machine description has no key '", full(word), "'"),
           .where = where(node),
           .fix = str(near.empty() ? "" : str("did you mean '", near, "'? "), "there are: ", join(known_, ", "))});
    }
  }

 private:
  std::string full(const std::string& key) const { return name_.empty() ? key : str(name_, ".", key); }
  const toml::array& list(const std::string& key, const toml::node& node) const {
    if (!node.is_array() || node.as_array()->empty()) refuse(key, node, "a list");
    return *node.as_array();
  }
  double positive(const std::string& key, const toml::node& node, const std::string& allowed = {}) const {
    const auto value = node.value<double>();
    if (!node.is_number() || !value || !(*value >= kLeast && *value <= kMost))
      refuse(key, node, str(allowed, "a number from ", kLeast, " to ", kMost));
    return *value;
  }
  int whole(const std::string& key, const toml::node& node) const {
    const auto value = node.value_exact<std::int64_t>();
    if (!value || *value < 1 || *value > 1'000'000) refuse(key, node, "a whole number from 1 to 1000000");
    return static_cast<int>(*value);
  }

  const toml::table& table_;
  std::string name_, origin_;
  std::vector<std::string> known_;
};

// Adds a table to those of its kind, which are each for something else: `of` is the same number or word for the same.
template <class T, class Of>
void add(std::vector<T>& all, T one, const Section& section, const Of& of) {
  if (std::ranges::any_of(all, [&](const T& other) { return std::invoke(of, other) == std::invoke(of, one); }))
    throw UserError({.code = "machine.given-twice",
                     .what = str("'", section.name(), "' is given twice for ", std::invoke(of, one)),
                     .where = section.where(),
                     .fix = "keep one of them"});
  all.push_back(std::move(one));
}

template <class T>
T chosen(Section& section, const std::string& key, const std::vector<std::pair<std::string, T>>& words) {
  const std::string given = section.word(key);
  std::vector<std::string> known;
  for (const auto& [word, value] : words) {
    if (word == given) return value;
    known.push_back(word);
  }
  section.refuse(key, section.need(key), str("one of ", join(known, ", ")));
}

const std::vector<std::pair<std::string, DType>>& float_names() {
  static const std::vector<std::pair<std::string, DType>> kNames = {
      {"f32", DType::kF32}, {"bf16", DType::kBF16}, {"f16", DType::kF16}, {"f64", DType::kF64}, {"i8", DType::kI8}};
  return kNames;
}

ProductRates read_products(Section& section) {
  ProductRates all{.dtype = chosen(section, "dtype", float_names()), .rate = {}};
  if (section.find("m")) all.rate = section.grid("rate", {section.axis("m"), section.axis("n"), section.axis("k")});
  else all.rate = Table::constant(section.number("rate"));
  for (const char* key : {"n", "k"})
    if (const toml::node* node = section.find(key); node && all.rate.axes.empty())
      section.refuse(key, *node, "given with 'm' and the other sizes");
  if (section.find("tile")) {
    const std::vector<int> tile = section.counts("tile");
    if (tile.size() != 3) section.refuse("tile", section.need("tile"), "a list of three sizes, for m, n and k");
    std::copy(tile.begin(), tile.end(), all.tile.begin());
  }
  section.check_all_known();
  return all;
}

AttendRates read_attention(Section& section) {
  const std::vector<std::vector<double>> axes = {section.axis("length"), section.axis("key")};
  AttendRates all{chosen(section, "dtype", float_names()), section.grid("forward", axes),
                  section.grid("backward", axes)};
  section.check_all_known();
  return all;
}

// One number, or a table over bytes.
Table read_sweep(Section& section, const Machine& machine) {
  const toml::node* node = section.find("sweep");
  if (!node) return Table::constant(machine.bytes_per_second);
  if (!node->is_table()) return Table::constant(section.number("sweep"));
  Section sweep = section.sections("sweep")[0];
  Table table = sweep.grid("rate", {sweep.axis("bytes")});
  sweep.check_all_known();
  return table;
}

Rates read_rates(Section& section, const Machine& machine) {
  Rates all;
  all.cores = section.count("cores", 1);
  all.overhead = section.seconds("overhead");
  all.pointwise = section.number("pointwise", machine.peak());
  all.hidden = section.share("hidden", 1);
  all.random = section.number("random", machine.peak());
  all.sweep = read_sweep(section, machine);
  for (Section& one : section.sections("product")) add(all.products, read_products(one), one, &ProductRates::dtype);
  for (Section& one : section.sections("attend")) add(all.attention, read_attention(one), one, &AttendRates::dtype);
  section.check_all_known();
  return all;
}

Link read_link(Section& section) {
  static const std::vector<std::pair<std::string, Topology>> kNames = {{"ring", Topology::kRing},
                                                                       {"torus", Topology::kTorus},
                                                                       {"switch", Topology::kSwitch},
                                                                       {"shared memory", Topology::kSharedMemory}};
  Link link{.name = section.word("name"),
            .topology = chosen(section, "topology", kNames),
            .sides = section.counts("sides"),
            .latency = section.seconds("latency"),
            .bandwidth = section.number("bandwidth"),
            .shared_by = section.count("shared_by", 1)};
  if ((link.topology == Topology::kTorus) != (link.sides.size() > 1))
    section.refuse("sides", section.need("sides"), "a list of one size, or of two or three for a torus");
  section.check_all_known();
  return link;
}

CollectiveTimes read_collective(Section& section) {
  static const std::vector<std::pair<std::string, std::string>> kNames = {{"all_reduce", "all_reduce"},
                                                                          {"reduce_scatter", "reduce_scatter"},
                                                                          {"all_gather", "all_gather"},
                                                                          {"all_to_all", "all_to_all"},
                                                                          {"permute", "permute"}};
  CollectiveTimes times{chosen(section, "kind", kNames),
                        section.grid("seconds", {section.axis("processors"), section.axis("bytes")})};
  section.check_all_known();
  return times;
}

void check_links(const Machine& machine, const Section& section) {
  if (machine.processors > 1 && machine.links.empty() && machine.collectives.empty())
    throw UserError({.code = "machine.no-links",
                     .what = str("the machine has ", machine.processors,
                                 " processors, but its description has neither links nor measured collectives"),
                     .where = section.where(),
                     .fix = str("add [[link]] tables, or 'processors = 1'; ", kSee)});
  std::int64_t joined = 1;
  for (const Link& link : machine.links)
    if (joined < machine.processors) joined *= link.units();
  if (machine.links.empty() || joined >= machine.processors) return;
  throw UserError({.code = "machine.too-few-links",
                   .what = str("the links join ", joined, " processors, but the machine has ", machine.processors),
                   .where = section.where(),
                   .fix = "add the outer level of links, or correct the sides: their product is the processors"});
}

std::int64_t read_bytes(Section& section, const std::string& key) {
  if (!section.find(key)) return 0;
  const std::optional<std::int64_t> bytes = bytes_of(section.word(key));
  if (!bytes) section.refuse(key, section.need(key), "a number of bytes such as \"141GB\" or \"80GiB\"");
  return *bytes;
}

Machine read(Section& section) {
  Machine machine;
  machine.processors = section.count("processors");
  machine.cores = section.count("cores", 0);
  machine.memory_bytes = read_bytes(section, "memory");
  machine.bytes_per_second = section.number("bytes_per_second");
  machine.step_seconds = section.seconds("step_seconds");
  machine.overlaps = section.flag("overlap", true);
  machine.skew = section.share("skew", 0);
  if (!section.need("peak").is_table()) section.refuse("peak", section.need("peak"), "one table");
  for (Section& peak : section.sections("peak")) {
    machine.peaks[DType::kF32] = peak.number("f32");
    for (const auto& [name, dtype] : float_names())
      if (peak.find(name)) machine.peaks[dtype] = peak.number(name);
    peak.check_all_known();
  }
  for (Section& one : section.sections("rates")) add(machine.rates, read_rates(one, machine), one, &Rates::cores);
  if (machine.rates.empty()) machine.rates = Machine::uniform(machine.peak(), machine.bytes_per_second).rates;
  std::sort(machine.rates.begin(), machine.rates.end(),
            [](const Rates& a, const Rates& b) { return a.cores < b.cores; });
  for (Section& one : section.sections("link")) machine.links.push_back(read_link(one));
  for (Section& one : section.sections("collective"))
    add(machine.collectives, read_collective(one), one, &CollectiveTimes::kind);
  check_links(machine, section);
  section.check_all_known();
  return machine;
}

}  // namespace

Machine Machine::parse(const std::string& text, const std::string& origin) {
  try {
    const toml::table table = toml::parse(text, origin);
    Section section(table, "", origin);
    Machine machine = read(section);
    machine.name = origin;
    return machine;
  } catch (const toml::parse_error& error) {
    throw UserError({.code = "machine.bad-toml",
                     .what = str("the machine description is not TOML: ", error.description()),
                     .where = str(origin, ":", error.source().begin.line),
                     .fix = kSee});
  }
}

std::vector<std::string> Machine::shipped() {
  std::vector<std::string> names;
  for (const auto& [name, text] : shipped_machines()) names.push_back(name);
  return names;
}

Machine Machine::load(const std::string& name_or_path) {
  const auto found = shipped_machines().find(name_or_path);
  if (found != shipped_machines().end()) return parse(found->second, name_or_path);
  std::ifstream file(name_or_path);
  std::ostringstream content;
  if (!file || std::filesystem::is_directory(name_or_path)) {
    const std::string near = nearest_word(name_or_path, shipped());
    throw UserError({.code = "machine.unknown-name",
                     .what = str("there is no machine '", name_or_path, "', and no file of that name can be read"),
                     .where = str("machine ", name_or_path),
                     .fix = str(near.empty() ? "" : str("did you mean '", near, "'? "),
                                "there are: ", join(shipped(), ", "), "; weft calibrate describes this machine")});
  }
  content << file.rdbuf();
  return parse(content.str(), name_or_path);
}

}  // namespace weft

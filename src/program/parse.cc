#include <algorithm>
#include <charconv>
#include <limits>

#include "base/str.h"
#include "program/text.h"
#include "program/text_detail.h"

namespace weft {

namespace {

using text::Cursor;

// Beyond these nothing fits any machine; within them no product of sizes overflows.
constexpr std::int64_t kMostProcessors = std::int64_t{1} << 16;
constexpr std::size_t kMostDims = 64;
constexpr int kDeepestLoop = 16;

// The text, line by line.
struct Lines {
  explicit Lines(std::string_view text) : rest(text), values(text.size() / 4 + 128) {}

  std::string_view rest;
  int number = 0;
  std::size_t values;  // that may still be numbered: no text of its size defines more

  bool at_end() const { return rest.empty(); }
  Cursor next() {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    Cursor cursor(rest.substr(0, end), ++number);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return cursor;
  }
  Cursor here() const { return {rest.substr(0, rest.find('\n')), number}; }
};

class Parser {
 public:
  explicit Parser(Lines& lines) : lines_(lines) {}

  Program parse() {
    read_lines();
    if (!has_version_)
      lines_.here().fail("program.no-version", "the text has no version line", "begin it with: weft program 1");
    finish_lines();
    if (lines_.rest.find_first_not_of(" \t\r\n") != std::string_view::npos)
      lines_.here().fail("program.text-after-end", "there is text after the end", "remove what follows the line: end");
    return std::move(p_);
  }

 private:
  // A loop's body: all but the version, mesh and layout, which are those of the program around it.
  Parser(Lines& lines, const Program& around, int depth) : lines_(lines), depth_(depth) {
    has_version_ = has_mesh_ = true;
    p_.mesh = around.mesh;
    p_.layout = around.layout;
  }

  void read_lines() {
    while (!lines_.at_end() && !ended_) {
      Cursor cursor = lines_.next();
      if (!cursor.at_end()) line(cursor);
    }
  }

  void finish_lines() {
    if (!ended_) lines_.here().fail("program.no-end", "the text breaks off", "end it with the line: end");
    for (const Update& update : updates_) p_.variables[update.variable].update = finish(update);
  }

  // A variable's new contents may be defined after it.
  struct Update {
    std::size_t variable;
    ValueId value;
    std::string name;
    Cursor where;
  };

  // --- Lines ---

  void line(Cursor& c) {
    if (!has_version_) return version(c);
    if (!has_mesh_) return mesh(c);
    if (c.next_is('%')) return instruction(c);
    if (depth_ == 0 && c.accept_word("layout")) p_.layout = c.quoted_text();
    else if (c.accept_word("input")) input(c);
    else if (depth_ == 0 && c.accept_word("variable")) variable(c);
    else if (c.accept_word("output")) output(c);
    else if (c.accept_word("end")) ended_ = true;
    else return instruction(c);
    no_more(c);
  }

  static void no_more(Cursor& c) {
    if (!c.at_end())
      c.fail("program.words-left-over", "words left over at the end of the line", "one statement per line");
  }

  void version(Cursor& c) {
    if (!c.accept_word("weft") || !c.accept_word("program"))
      c.fail("program.no-version", "the text has no version line", "begin it with: weft program 1");
    const std::int64_t version = c.integer("the version", 0, std::numeric_limits<std::int64_t>::max());
    if (version != 1)
      c.fail("program.unknown-version", str("program text of version ", version), "this Weft reads version 1");
    has_version_ = true;
    no_more(c);
  }

  void mesh(Cursor& c) {
    if (!c.accept_word("mesh"))
      c.fail("program.no-mesh", "the mesh is missing", "write it in the second line, as: mesh data:2 model:4");
    std::string words;
    std::int64_t size = 1;
    while (!c.at_end()) {
      const std::string axis = c.word("an axis");
      c.expect(':');
      const std::int64_t parts = c.integer("the size of an axis", 1, kMostProcessors);
      size *= parts;
      if (size > kMostProcessors)
        c.fail("program.mesh-too-large", "the mesh has too many processors", str("at most ", kMostProcessors));
      words += str(words.empty() ? "" : " ", axis, ":", parts);
    }
    p_.mesh = c.located([&] { return Mesh::parse(words); });
    if (p_.mesh.axes().size() > kMostDims)
      c.fail("program.too-many-axes", "the mesh has too many axes", str("at most ", kMostDims));
    has_mesh_ = true;
  }

  void input(Cursor& c) {
    ProgramInput input{c.name("the name of the input"), {}};
    input.value = definition(c);
    p_.inputs.push_back(std::move(input));
  }

  void variable(Cursor& c) {
    ProgramVariable variable{c.name("the name of the variable"), {}, std::nullopt, true};
    variable.value = definition(c);
    if (!c.accept_word("trainable")) {
      if (!c.accept_word("fixed"))
        c.fail("program.neither-trainable-nor-fixed", "the variable is neither trainable nor fixed",
               "write one of the two words");
      variable.trainable = false;
    }
    if (c.accept_word("update")) {
      c.expect('=');
      auto [value, name] = reference(c);
      updates_.push_back({p_.variables.size(), value, std::move(name), c});
    }
    p_.variables.push_back(std::move(variable));
  }

  void output(Cursor& c) {
    ProgramOutput output{c.name("the name of the output"), {}};
    output.value = use(c);
    p_.outputs.push_back(std::move(output));
  }

  void instruction(Cursor& c) {
    struct Left {
      ValueId id;
      Value value;
    };
    std::vector<Left> left;
    if (c.next_is('%')) {
      do {
        auto [id, name] = reference(c);
        left.push_back({id, type(c, std::move(name))});
      } while (c.accept(','));
      c.expect('=');
    }
    Instr instr;
    instr.operation = work_called(c);
    if (c.next_is('%')) {
      do instr.inputs.push_back(use(c));
      while (c.accept(','));
    }
    const auto read_fields = [&](auto... named) { (field(c, instr, named), ...); };
    std::visit([&](auto& operation) { std::apply(read_fields, operation.fields()); }, instr.operation);
    if (c.accept('@')) instr.origin = origin(c);
    no_more(c);
    auto* loop = std::get_if<Loop>(&instr.operation);
    auto* fused = std::get_if<Fused>(&instr.operation);
    if (loop || fused) {
      if (depth_ == kDeepestLoop)
        c.fail("program.loops-too-deep", "loops lie too deep in each other", str("at most ", kDeepestLoop));
      Parser inside(lines_, p_, depth_ + 1);
      inside.read_lines();
      inside.finish_lines();
      (loop ? loop->body : fused->body) = Body(std::move(inside.p_));
    }
    for (Left& l : left) {
      define(c, l.id, std::move(l.value));
      instr.outputs.push_back(l.id);
    }
    p_.body.push_back(std::move(instr));
  }

  Origin origin(Cursor& c) {
    Origin origin;
    std::string phase = c.word("a phase");
    if (const std::size_t mark = phase.find('#'); mark != std::string::npos) {
      const char *begin = phase.data() + mark + 1, *end = phase.data() + phase.size();
      if (std::from_chars(begin, end, origin.recompute).ptr != end || origin.recompute < 1)
        c.fail("program.recompute-without-number", str("'", phase, "' has no number of a recomputation"),
               "write it as: recompute#1");
      phase.resize(mark);
    }
    origin.phase = one_of(c, phase, "a phase", {Phase::kForward, Phase::kRecompute, Phase::kBackward, Phase::kUpdate});
    while (c.next_is('"')) origin.causes.push_back(c.quoted_text());
    return origin;
  }

  Operation work_called(Cursor& c) {
    const std::string name = c.word("an instruction");
    std::vector<std::string> names;
    if (std::optional<Operation> operation = find_work(name, names)) return std::move(*operation);
    const std::string near = nearest_word(name, names);
    c.fail("program.unknown-instruction", str("there is no instruction '", name, "'"),
           near.empty() ? str("one of: ", join(names, ", ")) : str("did you mean '", near, "'?"));
  }

  template <std::size_t I = 0>
  static std::optional<Operation> find_work(const std::string& name, std::vector<std::string>& names) {
    if constexpr (I < std::variant_size_v<Operation>) {
      using Kind = std::variant_alternative_t<I, Operation>;
      if (name == Kind::kName) return Kind{};
      names.push_back(Kind::kName);
      return find_work<I + 1>(name, names);
    }
    return std::nullopt;
  }

  // --- Values ---

  std::pair<ValueId, std::string> reference(Cursor& c) {
    c.expect('%');
    const std::int64_t id =
        c.integer("a value's number", 0, static_cast<std::int64_t>(lines_.values + p_.values.size()) - 1);
    return {static_cast<ValueId>(id), c.accept('.') ? c.name("the value's name") : ""};
  }

  bool is_defined(ValueId id) const { return defined_.has(id) && defined_[id]; }

  // The name may be left out; if it is there it must be the value's.
  ValueId use(Cursor& c) {
    auto [id, name] = reference(c);
    return checked(c, id, name);
  }

  ValueId finish(const Update& update) { return checked(update.where, update.value, update.name); }

  ValueId checked(const Cursor& c, ValueId id, const std::string& name) {
    if (!is_defined(id))
      c.fail("program.undefined-value", str("value %", id, " is used but not defined"), "define it on an earlier line");
    const std::string& known = p_.values[id].name;
    if (!name.empty() && name != known)
      c.fail("program.wrong-value-name", str("value %", id, " is called '", known, "', not '", name, "'"),
             "use its name, or its number alone");
    return id;
  }

  ValueId definition(Cursor& c) {
    auto [id, name] = reference(c);
    define(c, id, type(c, std::move(name)));
    return id;
  }

  void define(Cursor& c, ValueId id, Value value) {
    if (is_defined(id))
      c.fail("program.value-defined-twice", str("value %", id, " is defined twice"),
             "give one of the two another number");
    if (!p_.values.has(id)) {
      const std::size_t count = at(id.number()) + 1;
      lines_.values -= count - p_.values.size();
      p_.values.resize(count);
      defined_.resize(count);
    }
    p_.values[id] = std::move(value);
    defined_[id] = true;
  }

  // dtype, shape and sharding; no sharding is {}.
  Value type(Cursor& c, std::string name) {
    Value v;
    v.name = std::move(name);
    const std::string dtype = c.word("a dtype");
    v.dtype = c.located([&] { return dtype_of(dtype); });
    v.shape = shape(c);
    v.sharding = unsplit(v.shape);
    if (c.accept('{')) sharding(c, v);
    return v;
  }

  Shape shape(Cursor& c) {
    std::vector<Dim> dims;
    std::int64_t room = kMostElements;
    c.expect('[');
    while (!c.accept(']')) {
      Dim dim{c.word("a dim"), 1};
      c.expect('=');
      dim.size = c.integer("the size of a dim", 1, room);
      room /= dim.size;
      if (dims.size() == kMostDims)
        c.fail("program.too-many-dims", "the shape has too many dims", str("at most ", kMostDims));
      dims.push_back(std::move(dim));
    }
    return c.located([&] { return Shape(std::move(dims)); });
  }

  void sharding(Cursor& c, Value& v) {
    while (!c.accept('}')) {
      if (c.accept('|')) {
        v.sharding.pending = reduction(c);
        c.expect(':');
        v.sharding.partial = axes(c);
        c.expect('}');
        return;
      }
      const std::string dim = c.word("a dim");
      const auto position = v.shape.find(dim);
      if (!position)
        c.fail("program.split-of-unknown-dim", str("the sharding splits '", dim, "', no dim of the shape"),
               "name a dim of the shape");
      c.expect(':');
      if (!v.sharding.dims[*position].empty())
        c.fail("program.dim-split-twice", str("dim '", dim, "' is split twice"), "join the axes by '+'");
      v.sharding.dims[*position] = axes(c);
    }
  }

  // --- Fields ---

  template <class T>
  void field(Cursor& c, const Instr& instr, std::pair<const char*, T*> named) {
    if (!c.accept_word(named.first))
      c.fail("program.missing-attribute",
             str("instruction '", name_of(instr), "' lacks its attribute '", named.first, "'"),
             str("write ", named.first, "=… after the operands, attributes in the order that to_text prints"));
    c.expect('=');
    if constexpr (std::is_same_v<T, std::vector<MapNode>>) *named.second = expression(c, instr);
    else read(c, *named.second);
  }

  std::vector<MapNode> expression(Cursor& c, const Instr& instr) {
    std::vector<DType> dtypes;
    for (ValueId id : instr.inputs) dtypes.push_back(p_.values[id].dtype);
    return text::read_expression(c, dtypes);
  }

  void read(Cursor& c, std::string& word) { word = c.name("a word"); }
  void read(Cursor& c, Axes& out) { out = axes(c); }
  void read(Cursor& c, Reduce& how) { how = reduction(c); }
  void read(Cursor& c, double& number) { number = c.real(); }
  void read(Cursor& c, Number& number) { number = c.number_of(c.number_token()); }
  void read(Cursor& c, std::int64_t& number) { number = c.integer("a number", -kMostElements, kMostElements); }
  void read(Cursor& c, bool& yes) {
    yes = c.accept_word("true");
    if (!yes && !c.accept_word("false")) c.fail("program.not-a-bool", "expected true or false", "write one of the two");
  }
  void read(Cursor& c, std::uint64_t& number) {
    const std::string digits = c.word("a number");
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size())
      c.fail("program.not-64-bits", str("'", digits, "' is not a whole number of 64 bits"),
             "write 0 to 18446744073709551615");
  }
  void read(Cursor& c, Distribution& out) {
    out = one_of(c, "a distribution",
                 {Distribution::kUniform, Distribution::kNormal, Distribution::kTruncatedNormal,
                  Distribution::kBernoulli, Distribution::kBits});
  }
  void read(Cursor& c, Direction& out) {
    out = one_of(c, "a direction", {Direction::kForward, Direction::kToInput, Direction::kToFilter});
  }
  void read(Cursor& c, PoolKind& out) {
    out = one_of(c, "a kind of pool", {PoolKind::kMax, PoolKind::kSum, PoolKind::kWinners});
  }
  void read(Cursor& c, WindowDim& w) {
    c.expect('{');
    w.dim = c.name("a dim");
    if (c.accept(':')) w.filter = c.name("a dim of the filter");
    const auto number = [&](const char* name, std::int64_t& out) {
      if (!c.accept_word(name))
        c.fail("program.incomplete-window", str("a window lacks its ", name), str("write ", name, "=… in its place"));
      c.expect('=');
      read(c, out);
    };
    number("size", w.size);
    number("stride", w.stride);
    number("dilation", w.dilation);
    number("before", w.before);
    c.expect('}');
  }
  template <class Item>
  void read(Cursor& c, std::vector<Item>& numbers) {
    c.expect('[');
    while (!c.accept(']')) read(c, numbers.emplace_back());
  }

  Reduce reduction(Cursor& c) {
    return one_of(c, "a reduction", {Reduce::kSum, Reduce::kMax, Reduce::kMin, Reduce::kProduct});
  }

  // The enumerator that the next word names.
  template <class Enum>
  Enum one_of(Cursor& c, const char* what, std::initializer_list<Enum> all) {
    return one_of(c, c.word(what), what, all);
  }
  template <class Enum>
  Enum one_of(Cursor& c, const std::string& word, const char* what, std::initializer_list<Enum> all) {
    std::vector<std::string> names;
    for (Enum e : all) {
      if (word == name_of(e)) return e;
      names.emplace_back(name_of(e));
    }
    c.fail("program.unknown-word", str("'", word, "' is not ", what), str("write one of: ", join(names, ", ")));
  }

  Axes axes(Cursor& c) {
    Axes axes;
    if (c.accept_word("-")) return axes;
    do {
      const std::string name = c.word("an axis");
      const int axis = p_.mesh.find(name);
      if (axis < 0)
        c.fail("program.unknown-axis", str("the mesh has no axis '", name, "'"), str("its axes are: ", p_.mesh.text()));
      axes.push_back(axis);
    } while (c.accept('+'));
    return axes;
  }

  Lines& lines_;
  int depth_ = 0;
  bool has_version_ = false, has_mesh_ = false, ended_ = false;
  Program p_;
  ByValue<bool> defined_;
  std::vector<Update> updates_;
};

}  // namespace

Program parse_program(std::string_view text) {
  Lines lines(text);
  return Parser(lines).parse();
}

}  // namespace weft

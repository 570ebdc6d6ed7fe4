// weft run: runs a program from its text form, on threads, on the mesh that the text names.
#include "weft/detail/stored_program.h"

#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "options.h"
#include "weft/tensor_file.h"

namespace weft::tools {

namespace {

using Json = nlohmann::ordered_json;

struct RunOptions {
  std::string program;
  std::vector<std::string> inputs;
  std::optional<std::string> outputs, variables;
  std::optional<std::uint64_t> random_inputs, random_variables;
  std::uint64_t seed = 0;
  int steps = 1;
  bool json = false;
};

// Values for the program's inputs and variables, from all files, by name; and the names that the program does not have.
class Given {
 public:
  explicit Given(const StoredProgram& program) : program_(program) {}

  std::map<std::string, Array> values;
  std::vector<std::string> unused;

  // FILE, or NAME=FILE for an .npy with another name than the file.
  void take(const std::string& argument) {
    const std::size_t equals = argument.find('=');
    const bool named = equals != std::string::npos && !std::ifstream(argument);
    const TensorFile file = TensorFile::open(named ? argument.substr(equals + 1) : argument);
    if (named && file.tensors().size() != 1)
      throw UserError({.code = "run.tensor-of-several",
                       .what = "'" + argument + "' names the tensor of a file that has " +
                               std::to_string(file.tensors().size()) + " tensors",
                       .where = "--inputs " + argument,
                       .fix = "give the file alone: its tensors have names"});
    for (const auto& [stored, tensor] : file.tensors()) {
      const std::string name = named ? argument.substr(0, equals) : stored;
      if (const StoredProgram::Slot* slot = find(name)) take(file, stored, tensor, *slot);
      else unused.push_back(name);
    }
  }

 private:
  const StoredProgram::Slot* find(const std::string& name) const {
    for (const auto* slots : {&program_.inputs(), &program_.variables()})
      for (const StoredProgram::Slot& slot : *slots)
        if (slot.name == name) return &slot;
    return nullptr;
  }

  void take(const TensorFile& file, const std::string& stored, const FileTensor& tensor,
            const StoredProgram::Slot& slot) {
    std::vector<std::int64_t> sizes;
    for (const Dim& dim : slot.shape) sizes.push_back(dim.size);
    std::ostringstream wanted, found;
    wanted << slot.dtype << " " << slot.shape;
    found << tensor.stored_as << " [";
    for (std::size_t i = 0; i < tensor.sizes.size(); ++i) found << (i ? " " : "") << tensor.sizes[i];
    if (sizes != tensor.sizes || !tensor.dtype || is_float(*tensor.dtype) != is_float(slot.dtype))
      throw UserError(
          {.code = "run.file-mismatch",
           .what = "'" + slot.name + "' is " + wanted.str() + " in the program, but " + found.str() + "] in the file",
           .where = file.path(),
           .fix = "give a file with these sizes, in this order, and this kind of dtype"});
    if (!values.emplace(slot.name, file.read(stored, slot.shape.names())).second)
      throw UserError({.code = "run.value-in-two-files",
                       .what = "'" + slot.name + "' is in two of the files",
                       .where = file.path(),
                       .fix = "give each value once"});
  }

  const StoredProgram& program_;
};

// A summary of an array.
struct Summary {
  double least = std::numeric_limits<double>::infinity(), most = -least, sum = 0;
  std::int64_t finite = 0, strange = 0;  // strange: NaN or infinite
  std::vector<double> first;

  explicit Summary(const Array& array) {
    constexpr std::int64_t kFirst = 8;
    for (std::int64_t i = 0; i < array.elements(); ++i) {
      const double x = array.at(i);
      if (i < kFirst) first.push_back(x);
      if (!std::isfinite(x)) {
        ++strange;
        continue;
      }
      ++finite;
      sum += x;
      least = std::min(least, x);
      most = std::max(most, x);
    }
  }
  double mean() const { return sum / static_cast<double>(finite); }
};

std::string line(const std::string& use, const std::string& name, const Array& array) {
  const Summary s(array);
  std::ostringstream out;
  out.precision(9);
  out << use << " " << name << " " << array.dtype() << " " << array.shape() << ": ";
  if (array.elements() > 1 && s.finite > 0)
    out << "min " << s.least << ", max " << s.most << ", mean " << s.mean() << "; ";
  if (s.strange > 0 && array.elements() > 1) out << s.strange << " infinite or not a number; ";
  if (array.elements() > 1) out << "first ";
  for (std::size_t i = 0; i < s.first.size(); ++i) out << (i ? " " : "") << s.first[i];
  if (array.elements() > static_cast<std::int64_t>(s.first.size())) out << " …";
  out << "\n";
  return out.str();
}

Json object(const std::string& name, const Array& array) {
  const Summary s(array);
  Json shape = Json::array();
  for (const Dim& dim : array.shape()) shape.push_back({{"dim", dim.name}, {"size", dim.size}});
  std::ostringstream dtype;
  dtype << array.dtype();
  Json out = {{"name", name}, {"dtype", dtype.str()}, {"shape", shape}};
  if (s.finite > 0) out.update({{"min", s.least}, {"max", s.most}, {"mean", s.mean()}});
  out["not_finite"] = s.strange;
  out["first"] = s.first;
  return out;
}

void write_outputs(const std::string& path, const std::vector<std::pair<std::string, Array>>& outputs) {
  std::map<std::string, Array> tensors;
  for (const auto& [name, array] : outputs)
    if (!tensors.emplace(name, array).second)
      throw UserError({.code = "run.duplicate-output",
                       .what = "the program has two outputs '" + name + "', and a file has one tensor of a name",
                       .where = "--outputs " + path,
                       .fix = "rename one of them in the program's text"});
  write_safetensors(path, tensors);
}

void print_text(const StoredProgram& program, const RunOptions& o, const Given& given,
                const StoredRunResults& results) {
  std::cout << "mesh " << program.mesh() << " (" << program.mesh().size() << " processors), " << program.instructions()
            << " instructions, " << o.steps << (o.steps == 1 ? " step, " : " steps, ") << program.bytes() << " bytes\n";
  for (const std::string& name : given.unused) std::cout << "unused " << name << ": no input or variable\n";
  std::size_t zero = 0;
  for (const StoredProgram::Slot& variable : program.variables())
    if (!given.values.contains(variable.name) && !o.random_variables) ++zero;
  if (zero > 0) std::cout << zero << " of " << program.variables().size() << " variables started at zero\n";
  for (std::size_t step = 0; step < results.metrics.size(); ++step)
    for (const auto& [name, value] : results.metrics[step])
      std::cout << "step " << step << " metric " << name << ": " << value << "\n";
  for (const auto& [name, array] : results.outputs) std::cout << line("output", name, array);
}

void print_json(const StoredProgram& program, const RunOptions& o, const Given& given, const StoredRunResults& results,
                double seconds) {
  Json all = {{"mesh", program.mesh().text()},
              {"processors", program.mesh().size()},
              {"instructions", program.instructions()},
              {"bytes", program.bytes()},
              {"steps", o.steps},
              {"seconds", seconds},
              {"unused", given.unused},
              {"metrics", results.metrics},
              {"outputs", Json::array()},
              {"variables", Json::array()}};
  for (const auto& [name, array] : results.outputs) all["outputs"].push_back(object(name, array));
  for (const auto& [name, array] : results.variables) all["variables"].push_back(object(name, array));
  std::cout << all.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

void run_program(const RunOptions& o) {
  const StoredProgram program = StoredProgram::load(o.program);
  Given given(program);
  for (const std::string& file : o.inputs) given.take(file);
  StoredRunOptions options{
      .steps = o.steps, .seed = o.seed, .random_inputs = o.random_inputs, .random_variables = o.random_variables};
  if (o.json) options.print = [](const std::string& text) { std::cerr << text << "\n"; };
  const auto begin = std::chrono::steady_clock::now();
  const StoredRunResults results = program.run(given.values, options);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (o.outputs) write_outputs(*o.outputs, results.outputs);
  if (o.variables) write_safetensors(*o.variables, results.variables);
  if (o.json) print_json(program, o, given, results, seconds.count());
  else print_text(program, o, given, results);
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("run", "Run a program from its text, on threads");
  const auto o = std::make_shared<RunOptions>();
  sub->add_option("PROGRAM", o->program, "A program's text from weft explain --program or Executable::text()")
      ->required();
  sub->add_option(
         "--inputs", o->inputs,
         "Values of inputs and variables by name: .safetensors, .npy (with the name of the file) or NAME=FILE.npy; "
         "may be repeated")
      ->allow_extra_args(true);
  sub->add_option("--random-inputs", o->random_inputs, "Fill the inputs that no file has, from this seed");
  sub->add_option("--random-variables", o->random_variables,
                  "Fill the variables that no file has, from this seed; default: zero");
  sub->add_option("--outputs", o->outputs, "Also write the outputs of the last step to this .safetensors");
  sub->add_option("--variables", o->variables, "Also write the variables after the last step to this .safetensors");
  sub->add_option("--steps", o->steps, "Number of steps; variables keep their values between steps")
      ->capture_default_str();
  sub->add_option("--seed", o->seed, "The seed of the program's random numbers")->capture_default_str();
  sub->add_flag("--json", o->json, "One JSON object, see docs/run.md")->disable_flag_override();
  sub->callback([o, &action] { action = [o] { run_program(*o); }; });
}

}  // namespace weft::tools

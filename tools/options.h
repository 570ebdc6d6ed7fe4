// Helpers of the subcommands: reading options, and errors in three lines.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/error.h"
#include "weft/mesh.h"
#include "weft/detail/models.h"

namespace weft::tools {

// Adds a subcommand to the app; its callback sets the action that runs after the whole command line has been read.
using Action = std::function<void()>;
void add_explain(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_simulate(CLI::App& app, Action& action);
void add_calibrate(CLI::App& app, Action& action);
void add_train(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_translate(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_bench_lm(CLI::App& bench, Action& action);  // a subcommand of bench
void add_bench_decode(CLI::App& bench, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_import(CLI::App& app, Action& action);
void add_trace_summary(CLI::App& app, Action& action);
void add_vocab(CLI::App& app, Action& action);

// The library's version and how it was built.
std::string version_text();

// --wire threads|mpi|nccl, for a subcommand that runs something; the library refuses other words.
void add_wire_option(CLI::App& app, std::string& wire);

// "1MiB,16MiB,64" -> bytes. UserError, naming the option, for anything else.
std::vector<std::size_t> parse_bytes(const std::string& text, const std::string& option);
// "2,8". UserError, naming the option, for anything else.
std::vector<int> parse_counts(const std::string& text, const std::string& option);
std::vector<std::string> split_list(const std::string& text);

// --store and --store-level of a subcommand that takes a mesh.
struct StoreWords {
  std::optional<std::string> text;
  std::optional<int> level;
};
void add_store_options(CLI::App& sub, StoreWords& words);
// UserError for a level without a storage layout, and as Store::parse.
Store store_of(const StoreWords& words);

// A model by its name, built-in or a config, and the mesh and layout to compile it for.
struct ModelWords {
  std::string name;
  std::vector<std::string> more = {};  // configs that override the first
  std::optional<std::string> mesh, layout, memory;
  std::vector<std::string> set;
  StoreWords store;
};
std::vector<std::string> files_of(const ModelWords& words);  // of a config: the first file and `more`
void add_model_options(CLI::App& sub, ModelWords& words);
// A built-in model, or one step of the training of a config.
models::Model model_of(const ModelWords& words);
Store store_of(const ModelWords& words);
std::string model_list();  // for the end of --help

// A mistake on the command line as the error for the user.
UserError command_line_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace weft::tools

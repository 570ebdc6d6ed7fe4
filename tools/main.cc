// The weft command. Exit codes: 0, 2 for a mistake of the user, 3 for a failed run, 70 for a bug in Weft.
#include <cstdlib>
#include <iostream>
#include <new>

#include "lines.h"
#include "options.h"
#include "weft/session.h"

namespace {

constexpr int kUserError = 2;
constexpr int kRunError = 3;
constexpr int kInternalError = 70;

int fail(const std::exception& error, int code) {
  weft::wire::report(error);
  return code;
}

// Runs the subcommand; returns 0 for help.
int run(int argc, char** argv) {
  CLI::App app("Weft: distributed tensor programs with named dimensions.", "weft");
  app.set_version_flag("--version", weft::tools::version_text());
  app.require_subcommand(1);
  weft::tools::Action action;
  weft::tools::add_train(app, action);
  weft::tools::add_eval(app, action);
  weft::tools::add_generate(app, action);
  weft::tools::add_translate(app, action);
  weft::tools::add_explain(app, action);
  weft::tools::add_plan(app, action);
  weft::tools::add_simulate(app, action);
  weft::tools::add_calibrate(app, action);
  weft::tools::add_run(app, action);
  weft::tools::add_bench(app, action);
  weft::tools::add_trace_summary(app, action);
  weft::tools::add_vocab(app, action);
  weft::tools::add_export(app, action);
  weft::tools::add_import(app, action);
  weft::tools::add_doctor(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == EXIT_SUCCESS) return app.exit(error);  // help or version
    throw weft::tools::command_line_error(app, error);
  }
  action();
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    weft::tools::flush_output();
    return code;
  } catch (const weft::UserError& error) {
    return fail(error, kUserError);
  } catch (const weft::RunError& error) {
    return fail(error, kRunError);
  } catch (const weft::InternalError& error) {
    return fail(error, kInternalError);
  } catch (const std::bad_alloc&) {
    return fail(weft::RunError({.code = "command.out-of-memory",
                                .what = "memory ran out",
                                .where = "weft",
                                .fix = "ask for smaller sizes"}),
                kRunError);
  } catch (const std::exception& error) {
    return fail(weft::InternalError(error.what()), kInternalError);
  }
}

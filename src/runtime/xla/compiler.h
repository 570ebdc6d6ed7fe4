// Compiling modules: in this process, or in a child process that may crash without harm; results are kept on disk.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "runtime/xla/client.h"
#include "stablehlo/emit.h"

namespace weft::xla {

// What to compile, or, without a module, whose devices to describe. Travels to the child as bytes.
struct CompileRequest {
  std::string plugin;         // the path
  int devices = 1;            // of the client, and replicas of the module
  std::string topology = {};  // "v4:2x2x1": ahead of time for these devices, which need not be here; "": for a client
  std::string module = {};    // StableHLO text
};

// Travels back, and lies in the cache.
struct CompileResult {
  PJRT_Error_Code code = PJRT_Error_Code_OK;
  std::string message = {};               // of an error, or the description
  std::string call = {};                  // that failed
  std::string error_code = {}, fix = {};  // of a UserError, in place of a call
  std::string versions = {};              // of the plugin
  CompiledMemory memory = {};
  double seconds = 0, cpu_seconds = 0;  // of the compiler; all threads
  int devices = 0;                      // of the topology or the client
  std::string executable = {};          // serialized; "" if the plugin cannot

  bool succeeded() const { return code == PJRT_Error_Code_OK && error_code.empty(); }
};

std::string to_bytes(const CompileRequest& request);
std::string to_bytes(const CompileResult& result);
std::optional<CompileRequest> request_from(const std::string& bytes);  // none if the bytes are damaged
std::optional<CompileResult> result_from(const std::string& bytes);

// Does what the request says, in this process. Errors are in the result.
CompileResult serve(const CompileRequest& request);

// Lets a child process serve the request. None if the program weft-pjrt-compile, which serves it, is not installed.
// RunError if the child crashes, with its last words, or if it takes longer than the limit.
std::optional<CompileResult> serve_in_child(const CompileRequest& request,
                                            std::chrono::seconds limit = std::chrono::seconds::max());

// The file of the cache for a request: by the module, the devices, the options of the compiler and the plugin's file, its size and time. "" if the environment
// variable WEFT_XLA_CACHE is "off".
std::string cache_file(const CompileRequest& request);
// None if there is no such file; a damaged file is none too, with a warning.
std::optional<CompileResult> read_cache(const std::string& file);
// A cache that cannot be written is no error: it warns once.
void write_cache(const std::string& file, const CompileResult& result);
void warn(const std::string& text);

// A program that its client can run, from the cache or from the compiler.
struct BuiltProgram {
  LoadedProgram program;
  CompiledMemory memory;
  double seconds = 0;  // of the compiler, when it was compiled
};
BuiltProgram build(const Client& client, const std::string& module);

// What modules for these devices may use.
stablehlo::Platform platform_of(const Client& client);
stablehlo::Platform platform_of_topology(const std::string& topology);

// Throws the error of a result that has one.
void check(const CompileResult& result, const std::string& plugin);

// Compiles ahead of time. The plugin is opened in a child process. The result is an error where the compiler says that the program does not fit into the memory
// of the devices; any other error is thrown.
CompileResult build_for_topology(const std::string& plugin, const std::string& topology, int devices,
                                 const std::string& module);

}  // namespace weft::xla

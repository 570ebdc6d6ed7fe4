// The child process that compiles. It runs the program weft-pjrt-compile, since a plugin cannot be used after fork.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/str.h"
#include "runtime/xla/compiler.h"

extern char** environ;

namespace weft::xla {

namespace {

constexpr const char* kProgram = "weft-pjrt-compile";

// Where this code lies: the program, or libweft.so.
std::filesystem::path folder_of_this() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&serve), &info) == 0 || !info.dli_fname) return {};
  std::error_code ignored;
  const std::filesystem::path file = std::filesystem::canonical(
      std::filesystem::path(info.dli_fname).has_parent_path() ? info.dli_fname : "/proc/self/exe", ignored);
  return file.parent_path();
}

// Beside the program, in bin beside lib, or in a build folder; WEFT_PJRT_COMPILE names another place.
std::string program_path() {
  if (const char* given = std::getenv("WEFT_PJRT_COMPILE")) return std::filesystem::exists(given) ? given : "";
  const std::filesystem::path folder = folder_of_this();
  for (const char* relative : {".", "..", "../bin", "../tools"}) {
    const std::filesystem::path place = folder / relative / kProgram;
    if (std::filesystem::exists(place)) return place;
  }
  return "";
}

// Files of one request, removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "weft-pjrt-XXXXXX";
    if (!mkdtemp(name.data()))
      throw RunError({.code = "device.xla-no-temporary-folder",
                      .what = str("no folder for the compiler's files can be made: ", std::strerror(errno)),
                      .where = name,
                      .fix = "set TMPDIR to a folder where you may write"});
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string{std::istreambuf_iterator<char>(file.rdbuf()), {}};
}

// The last lines of what the child said, on one line.
std::string last_words(const std::string& path) {
  constexpr std::size_t kMost = 600;
  std::string text = contents(path);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.size() > kMost) text = "… " + text.substr(text.size() - kMost);
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text.empty() ? "nothing" : text;
}

class Child {
 public:
  Child(const std::string& program, const Folder& folder) {
    const std::string request = folder.file("request"), result = folder.file("result"), log = folder.file("log");
    char* const arguments[] = {const_cast<char*>(program.c_str()), const_cast<char*>(request.c_str()),
                               const_cast<char*>(result.c_str()), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    const int failure = posix_spawn(&id_, program.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failure != 0)
      throw RunError({.code = "device.xla-no-child",
                      .what = str("the compiler's process cannot be started: ", std::strerror(failure)),
                      .where = program,
                      .fix = "see that the file may be run, or remove it: then this process compiles"});
  }

  // The status that waitpid gives; none, and the child is killed, if it takes longer.
  std::optional<int> wait(std::chrono::seconds limit) const {
    if (limit != std::chrono::seconds::max()) {
      const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, id_, 0));
      pollfd ended{.fd = descriptor, .events = POLLIN, .revents = 0};
      const bool late = descriptor >= 0 && poll(&ended, 1, static_cast<int>(limit.count() * 1000)) == 0;
      if (descriptor >= 0) close(descriptor);
      if (late) {
        kill(id_, SIGKILL);
        waitpid(id_, nullptr, 0);
        return std::nullopt;
      }
    }
    int status = 0;
    while (waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

 private:
  pid_t id_ = 0;
};

}  // namespace

std::optional<CompileResult> serve_in_child(const CompileRequest& request, std::chrono::seconds limit) {
  const std::string program = program_path();
  if (program.empty()) return std::nullopt;
  const Folder folder;
  std::ofstream(folder.file("request"), std::ios::binary) << to_bytes(request);
  const std::optional<int> status = Child(program, folder).wait(limit);
  if (!status)
    throw RunError(
        {.code = "device.xla-plugin-hangs",
         .what = str("the plugin has not answered in ", limit.count(), " s"),
         .where = str("plugin ", request.plugin),
         .fix = "see that the plugin's devices are in this machine; docs/xla.md has the variables of libtpu"});
  if (std::optional<CompileResult> result = result_from(contents(folder.file("result")))) return result;
  const std::string end = WIFSIGNALED(*status) ? str("signal ", WTERMSIG(*status), ", ", strsignal(WTERMSIG(*status)))
                                               : str("exit code ", WEXITSTATUS(*status));
  throw RunError({.code = "device.xla-compiler-crashed",
                  .what = str("the compiler of the plugin crashed with ", end,
                              "; its last words: ", last_words(folder.file("log"))),
                  .where = str("plugin ", request.plugin),
                  .fix = "use another release of the plugin or --device cpu; send the module (weft export --stablehlo) "
                         "to the plugin's makers"});
}

}  // namespace weft::xla

#include "train/checkpoint_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "weft/error.h"

namespace weft::checkpoint {

namespace {

[[noreturn]] void fail(const std::string& doing, const std::string& path, int error) {
  throw RunError({.code = "checkpoint.file-failed",
                  .what = sentence("cannot ", doing, " '", path, "': ", std::strerror(error)),
                  .where = path,
                  .fix = "see that its folder exists, that you may write there and that the disk has room"});
}

void sync(int descriptor, const std::string& path) {
  if (::fsync(descriptor) != 0) fail("write", path, errno);
}

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// The step in "step-00001000"; none for any other name.
bool step_of(const std::string& name, std::int64_t& step) {
  constexpr std::string_view kBegin = "step-";
  if (!name.starts_with(kBegin)) return false;
  const char* end = name.data() + name.size();
  const auto [stop, failure] = std::from_chars(name.data() + kBegin.size(), end, step);
  return failure == std::errc() && stop == end && step >= 0 && name == step_name(step);
}

}  // namespace

NewFile::NewFile(const std::string& path)
    : path_(path), descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) fail("make", path, errno);
}

NewFile::~NewFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void NewFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("write", path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

void NewFile::write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

void NewFile::close() {
  sync(descriptor_, path_);
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0) fail("write", path_, errno);
}

void write_new(const std::string& path, std::string_view text) {
  NewFile file(path);
  file.write(text);
  file.close();
}

void replace_file(const std::string& path, std::string_view text) {
  const std::filesystem::path whole(path);
  const std::string beside = (whole.parent_path() / ("." + whole.filename().string() + ".partial")).string();
  ::unlink(beside.c_str());
  write_new(beside, text);
  rename_path(beside, path);
  sync_folder(parent_of(path));
}

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0) fail("make", path, errno);
}

void make_folders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail("make", path, error.value());
  if (!std::filesystem::is_directory(path, error)) fail("use", path, ENOTDIR);
}

void sync_folder(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail("open", path, errno);
  const int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  if (error != 0 && error != EINVAL) fail("write", path, error);  // EINVAL: a file system that needs no such thing
}

void rename_path(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) fail("write", to, errno);
}

void exchange(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS) fail("write", to, errno);
  const std::string aside = from + ".aside";
  rename_path(to, aside);
  rename_path(from, to);
  rename_path(aside, from);
}

void remove_all(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) fail("remove", path, error.value());
}

FolderLock::FolderLock(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / ".lock").string();
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("make", path, errno);
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;  // some file systems have no locks
  ::close(descriptor_);
  throw UserError({.code = "checkpoint.folder-in-use",
                   .what = sentence("another program is writing checkpoints to '", folder, "'"),
                   .where = path,
                   .fix = "wait until it has ended, or save to another folder"});
}

FolderLock::~FolderLock() { ::close(descriptor_); }

void check_not_in_use(const std::string& folder) {
  if (std::filesystem::exists(path_in(folder, ".lock"))) const FolderLock lock(folder);
}

FolderContents contents_of(const std::string& folder) {
  FolderContents found;
  std::error_code error;
  for (std::filesystem::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    const std::string name = i->path().filename().string();
    std::int64_t step = 0;
    if (step_of(name, step)) found.steps[step] = i->path().string();
    else if (name == ".latest.partial") found.leftovers.push_back(i->path().string());
    else if (const std::string end_of = i->path().extension().string();
             name.starts_with(".step-") && (end_of == ".partial" || end_of == ".old" || end_of == ".aside"))
      found.leftovers.push_back(i->path().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) fail("read", folder, error.value());
  std::sort(found.leftovers.begin(), found.leftovers.end());
  return found;
}

std::string step_name(std::int64_t step) {
  constexpr std::size_t kDigits = 8;
  const std::string digits = std::to_string(step);
  return "step-" + std::string(digits.size() < kDigits ? kDigits - digits.size() : 0, '0') + digits;
}

std::string unfinished_name(std::int64_t step) { return "." + step_name(step) + ".partial"; }

std::string outdated_name(std::int64_t step) { return "." + step_name(step) + ".old"; }

}  // namespace weft::checkpoint

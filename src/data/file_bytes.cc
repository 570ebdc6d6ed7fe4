#include "data/file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "weft/detail/written_file.h"

namespace weft {

namespace {

UserError cannot_open(const std::string& path, const std::string& why) {
  return UserError({.code = "file.cannot-open",
                    .what = sentence("cannot open the file '", path, "': ", why),
                    .where = path,
                    .fix = "give the path of a file that you may read"});
}

RunError cannot_write(const std::string& path, int error) {
  return RunError({.code = "file.cannot-write",
                   .what = sentence("cannot write the file '", path, "': ", std::strerror(error)),
                   .where = path,
                   .fix = "see that its folder exists, that you may write there and that the disk has room"});
}

}  // namespace

FileBytes::FileBytes(const std::string& path) : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat found;
  if (descriptor_ < 0) throw cannot_open(path, std::strerror(errno));
  const bool known = ::fstat(descriptor_, &found) == 0;
  if (!known || !S_ISREG(found.st_mode)) {
    ::close(descriptor_);
    throw cannot_open(path, known ? "it is no regular file" : "its size is unknown");
  }
  size_ = static_cast<std::uint64_t>(found.st_size);
}

FileBytes::FileBytes(std::string path, std::vector<std::byte> bytes)
    : path_(std::move(path)), size_(bytes.size()), bytes_(std::move(bytes)) {}

FileBytes::~FileBytes() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileBytes::read(std::uint64_t offset, void* to, std::size_t count) const {
  internal_check(offset <= size_ && count <= size_ - offset, "a read past the end of a file");
  if (descriptor_ < 0) {
    if (count > 0) std::memcpy(to, bytes_.data() + offset, count);
    return;
  }
  for (std::size_t done = 0; done < count;) {
    const ssize_t got =
        ::pread(descriptor_, static_cast<char*>(to) + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw RunError({.code = "file.read-failed",
                      .what = got < 0 ? sentence("reading failed: ", std::strerror(errno))
                                      : sentence("the file has become shorter than the ", size_, " bytes it had"),
                      .where = sentence(path_, ", byte ", offset + done),
                      .fix = "open the file again, and do not change it while it is read"});
    done += static_cast<std::size_t>(got);
  }
}

std::string FileBytes::read_text(std::uint64_t offset, std::size_t count) const {
  std::string out(count, '\0');
  read(offset, out.data(), count);
  return out;
}

void FileBytes::refuse(ErrorCode code, std::uint64_t offset, const std::string& what, const std::string& fix) const {
  throw UserError({.code = code, .what = what, .where = sentence(path_, ", byte ", offset, " of ", size_), .fix = fix});
}

namespace detail {

WrittenFile::WrittenFile(const std::string& path) : path_(path) {
  struct stat found;
  const bool replaceable = ::stat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode);
  written_ = replaceable ? path + ".partial" : path;
  stream_.open(written_, std::ios::binary | std::ios::trunc);
}

WrittenFile::~WrittenFile() {
  stream_.close();
  if (written_ != path_) std::remove(written_.c_str());  // absent after finish()
}

bool WrittenFile::finish() {
  stream_.close();
  return stream_ && (written_ == path_ || std::rename(written_.c_str(), path_.c_str()) == 0);
}

}  // namespace detail

void write_whole(const std::string& path, const std::vector<std::pair<const void*, std::size_t>>& pieces) {
  detail::WrittenFile file(path);
  for (const auto& [data, size] : pieces)
    file.stream().write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  if (!file.finish()) throw cannot_write(path, errno);
}

}  // namespace weft

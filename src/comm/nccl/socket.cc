#include "comm/nccl/socket.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

constexpr int kConnectMilliseconds = 3000;
constexpr std::uint32_t kLongestFrame = 64 << 20;

void make_nonblocking(int descriptor) {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Whether the connection is made in time.
bool connects(int descriptor, const sockaddr* address, socklen_t length, std::string& why) {
  int error = connect(descriptor, address, length) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd waiting{.fd = descriptor, .events = POLLOUT, .revents = 0};
    socklen_t size = sizeof error;
    if (poll(&waiting, 1, kConnectMilliseconds) != 1) error = ETIMEDOUT;
    else getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error != 0) why = std::strerror(error);
  return error == 0;
}

}  // namespace

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

Socket::~Socket() { close(); }

void Socket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

Socket Socket::listening(int port) {
  Socket made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(made.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (!made.is_open() || bind(made.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(made.descriptor(), 1024) != 0)
    throw RunError({.code = "nccl.port-taken",
                    .what = str("rank 0 cannot listen on port ", port, ": ", std::strerror(errno)),
                    .where = "making the nccl wire",
                    .fix = "name another port in WEFT_NCCL_ADDRESS, or end the process that holds it"});
  make_nonblocking(made.descriptor());
  return made;
}

int Socket::port() const {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin_port);
}

Socket Socket::accepted() const {
  Socket caller(accept(descriptor_, nullptr, nullptr));
  if (caller.is_open()) make_nonblocking(caller.descriptor());
  return caller;
}

Socket Socket::connected(const std::string& host, int port, std::string& why) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  if (const int error = getaddrinfo(host.c_str(), str(port).c_str(), &wanted, &found); error != 0) {
    why = gai_strerror(error);
    return Socket();
  }
  Socket made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (made.is_open()) make_nonblocking(made.descriptor());
  if (!made.is_open() || !connects(made.descriptor(), found->ai_addr, found->ai_addrlen, why)) made.close();
  freeaddrinfo(found);
  return made;
}

void FrameStream::put(std::string_view frame) {
  const auto length = static_cast<std::uint32_t>(frame.size());
  out_.append(reinterpret_cast<const char*>(&length), sizeof length);
  out_.append(frame);
}

void FrameStream::send() {
  while (!out_.empty() && is_open()) {
    const ssize_t sent = ::send(descriptor(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent < 0) return close();
    out_.erase(0, static_cast<std::size_t>(sent));
  }
}

bool FrameStream::receive() {
  char piece[16 << 10];
  while (is_open()) {
    const ssize_t came = recv(descriptor(), piece, sizeof piece, 0);
    if (came > 0) in_.append(piece, static_cast<std::size_t>(came));
    else if (came < 0 && errno == EINTR) continue;
    else return came < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
  return false;
}

std::optional<std::string> FrameStream::take() {
  std::uint32_t length = 0;
  if (in_.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, in_.data(), sizeof length);
  if (length > kLongestFrame) {  // not one of ours
    close();
    in_.clear();
    return std::nullopt;
  }
  if (in_.size() < sizeof length + length) return std::nullopt;
  std::string frame = in_.substr(sizeof length, length);
  in_.erase(0, sizeof length + length);
  return frame;
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> outside, inside;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {"127.0.0.1"};
  for (const ifaddrs* each = all; each; each = each->ifa_next) {
    if (!each->ifa_addr || each->ifa_addr->sa_family != AF_INET || (each->ifa_flags & IFF_UP) == 0) continue;
    char text[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr, text, sizeof text);
    ((each->ifa_flags & IFF_LOOPBACK) != 0 ? inside : outside).emplace_back(text);
  }
  freeifaddrs(all);
  outside.insert(outside.end(), inside.begin(), inside.end());
  return outside;
}

}  // namespace weft::comm

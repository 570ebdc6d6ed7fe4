// TCP connections that carry frames: a length and so many bytes. Only connected() waits, for some seconds at most.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::comm {

using SteadyTime = std::chrono::steady_clock::time_point;

// An open socket, closed with the object.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  void close();

  // A socket that accepts connections on all interfaces; port 0: the system chooses. RunError if the port is taken.
  static Socket listening(int port);
  int port() const;
  Socket accepted() const;  // not open if nobody has called

  // Not open, with the system's text in `why`, if nobody listens there.
  static Socket connected(const std::string& host, int port, std::string& why);

 private:
  int descriptor_ = -1;
};

// One end of a connection. Bytes come and go as far as the system takes them, without waiting.
class FrameStream {
 public:
  FrameStream() = default;
  explicit FrameStream(Socket socket) : socket_(std::move(socket)) {}

  int descriptor() const { return socket_.descriptor(); }
  bool is_open() const { return socket_.is_open(); }
  void close() { socket_.close(); }

  void put(std::string_view frame);
  bool has_unsent() const { return !out_.empty(); }
  void send();                        // as much as goes; closes the connection on an error
  bool receive();                     // what has come; false once the peer has closed
  std::optional<std::string> take();  // the next whole frame

 private:
  Socket socket_;
  std::string in_, out_;
};

// The addresses of this machine's interfaces, those that other machines reach first.
std::vector<std::string> own_addresses();

}  // namespace weft::comm

#include "comm/nccl/job.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <thread>

#include <poll.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/str.h"
#include "comm/launch.h"
#include "comm/wire.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

constexpr std::chrono::milliseconds kTryAgainAfter{50};
constexpr std::chrono::seconds kForWelcome{5};
constexpr const char* kMaking = "making the nccl wire";

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A place where rank 0 listens. The token tells its job from others that have had the same port.
struct Place {
  std::vector<std::string> hosts;
  int port = 0;
  std::uint64_t token = 0;
};

std::optional<Place> place_of_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == address.npos || colon == 0) return std::nullopt;
  const std::optional<double> port = number_of(address.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535) return std::nullopt;
  return Place{.hosts = {address.substr(0, colon)}, .port = static_cast<int>(*port)};
}

std::string text_of(const Place& place) {
  return str("weft ", place.port, " ", place.token, " ", join(place.hosts, " "), " end");
}

std::optional<Place> place_of_text(const std::string& text) {
  std::istringstream words(text);
  std::string head, host;
  Place place;
  if (!(words >> head >> place.port >> place.token) || head != "weft") return std::nullopt;
  while (words >> host && host != "end") place.hosts.push_back(host);
  return host == "end" ? std::optional(place) : std::nullopt;
}

[[noreturn]] void refuse_address(const std::string& address) {
  throw UserError({.code = "nccl.bad-address",
                   .what = str("WEFT_NCCL_ADDRESS is '", address, "', not a host and a port"),
                   .where = kMaking,
                   .fix = "write the host of rank 0 and a free port there, as WEFT_NCCL_ADDRESS=node1:29400"});
}

void write_place(const std::string& file, const Place& place) {
  const std::string part = str(file, ".", getpid());
  std::ofstream(part) << text_of(place);
  if (std::rename(part.c_str(), file.c_str()) != 0)
    throw UserError({.code = "nccl.file-not-written",
                     .what = str("rank 0 cannot write the file ", file),
                     .where = str(kMaking, ", WEFT_NCCL_FILE"),
                     .fix = "name a file in a folder that all processes of the job share and rank 0 may write to"});
}

std::optional<Place> place_in(const std::string& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return place_of_text(text.str());
}

std::string name_of_place(const NcclJob& job) {
  if (!job.address.empty()) return job.address;
  return job.file.empty() ? "the address that it sent by MPI" : str("the address in ", job.file);
}

void say_hello(FrameStream& to_hub, const NcclJob& job, std::uint64_t token) {
  ByteWriter frame;
  frame.number(FrameKind::kHello);
  frame.number(token);
  frame.number(job.rank);
  frame.number(job.size);
  frame.number(static_cast<std::int64_t>(getpid()));
  to_hub.put(frame.bytes());
  to_hub.send();
}

// Whether the hub is that of the job.
bool is_welcome(FrameStream& to_hub) {
  for (const SteadyTime end = std::chrono::steady_clock::now() + kForWelcome; std::chrono::steady_clock::now() < end;) {
    pollfd waiting{.fd = to_hub.descriptor(), .events = POLLIN, .revents = 0};
    poll(&waiting, 1, static_cast<int>(kTryAgainAfter.count()));
    const bool is_open = to_hub.receive();
    if (to_hub.take()) return true;
    if (!is_open) return false;
  }
  return false;
}

FrameStream found_hub(const NcclJob& job, const std::optional<Place>& known) {
  const SteadyTime end = std::chrono::steady_clock::now() + job.patience;
  std::string why = "there is no such file yet";
  while (true) {
    const std::optional<Place> place = known ? known : place_in(job.file);
    for (std::size_t i = 0; place && i < place->hosts.size(); ++i) {
      Socket socket = Socket::connected(place->hosts[i], place->port, why);
      if (!socket.is_open()) continue;
      FrameStream to_hub(std::move(socket));
      say_hello(to_hub, job, place->token);
      if (is_welcome(to_hub)) return to_hub;
      why = "a process listens there that is not rank 0 of this job";
    }
    if (std::chrono::steady_clock::now() > end)
      throw RunError(
          {.code = "nccl.no-rank-0",
           .what = str("rank ", job.rank, " of ", job.size, " did not reach rank 0 at ", name_of_place(job), " within ",
                       std::chrono::duration<double>(job.patience).count(), " s: ", why),
           .where = kMaking,
           .fix = "see that rank 0 runs, that its host accepts connections from this host, and that all processes have "
                  "the same WEFT_NCCL_ADDRESS or WEFT_NCCL_FILE"});
    std::this_thread::sleep_for(kTryAgainAfter);
  }
}

}  // namespace

NcclJob nccl_job() {
  const std::string rank = variable("WEFT_NCCL_RANK"), size = variable("WEFT_NCCL_SIZE"),
                    timeout = variable("WEFT_NCCL_TIMEOUT");
  if (rank.empty() != size.empty())
    throw UserError({.code = "nccl.half-a-job",
                     .what = str(rank.empty() ? "WEFT_NCCL_SIZE" : "WEFT_NCCL_RANK", " is set, but ",
                                 rank.empty() ? "WEFT_NCCL_RANK" : "WEFT_NCCL_SIZE", " is not"),
                     .where = "the environment of this process",
                     .fix = "set both WEFT_NCCL_RANK and WEFT_NCCL_SIZE, or start the processes by mpirun"});
  NcclJob job;
  const Launch launch = launched().value_or(Launch{});
  job.rank = launch.rank;
  job.size = launch.size;
  job.address = variable("WEFT_NCCL_ADDRESS");
  job.file = variable("WEFT_NCCL_FILE");
  job.host_id = variable("NCCL_HOSTID");
  job.by_mpi = job.address.empty() && job.file.empty() && job.size > 1;
  if (!timeout.empty()) {
    const std::optional<double> seconds = number_of(timeout);
    if (!seconds || *seconds <= 0)
      throw UserError({.code = "nccl.bad-timeout",
                       .what = str("WEFT_NCCL_TIMEOUT is '", timeout, "'"),
                       .where = "the environment of this process",
                       .fix = "give it a number of seconds above 0"});
    job.patience = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(*seconds));
  }
  if (!job.address.empty() && !place_of_address(job.address)) refuse_address(job.address);
  if (job.by_mpi && !rank.empty())
    throw UserError(
        {.code = "nccl.no-address",
         .what = str("this process is rank ", job.rank, " of ", job.size, " and does not know where rank 0 is"),
         .where = "the environment of this process",
         .fix = "set WEFT_NCCL_ADDRESS=host:port or WEFT_NCCL_FILE=path, the same for all processes"});
  return job;
}

Meeting meet(const NcclJob& job) {
  Meeting meeting;
  std::optional<Place> place;
  if (!job.address.empty()) place = place_of_address(job.address);
  if (!job.address.empty() && !place) refuse_address(job.address);
  std::string published;
  if (job.rank == 0) {
    Socket listening = Socket::listening(place ? place->port : 0);
    if (place) {
      place->hosts = {"127.0.0.1"};
    } else {
      place = Place{own_addresses(), listening.port(), std::random_device{}() | std::uint64_t{1}};
      if (!job.by_mpi && !job.file.empty()) write_place(job.file, *place);
      published = text_of(*place);
      place->hosts = {"127.0.0.1"};
    }
    meeting.hub = std::make_unique<Hub>(std::move(listening), job.size, place->token, job.patience);
  }
  if (job.by_mpi) {
    published = share_by_mpi(published);
    if (job.rank != 0) place = place_of_text(published);
  }
  meeting.to_hub = found_hub(job, place);
  return meeting;
}

}  // namespace weft::comm

#include "comm/mpi/control_messages.h"

#include <cstddef>

namespace weft::comm {

namespace {

constexpr std::size_t kOpen = 32;  // receives

}  // namespace

ControlMessages::ControlMessages(MPI_Comm ranks)
    : ranks_(ranks), coming_(kOpen), requests_(kOpen, MPI_REQUEST_NULL), done_(kOpen) {
  int size = 0;
  MPI_Comm_size(ranks, &size);
  met_.resize(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < kOpen; ++i) listen(i);
}

// What is still open when the wire goes is given up; what is still being sent stays allocated for the library's sake.
ControlMessages::~ControlMessages() {
  for (MPI_Request& request : requests_) {
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);  // a cancelled receive ends at once
  }
  if (all_sent()) return;
  for (std::unique_ptr<Sent>& sent : sent_)
    if (sent->request != MPI_REQUEST_NULL) static_cast<void>(sent.release());
}

void ControlMessages::listen(std::size_t i) {
  check_mpi(MPI_Irecv(&coming_[i], sizeof(ControlMessage), MPI_BYTE, MPI_ANY_SOURCE, kTag, ranks_, &requests_[i]),
            "MPI_Irecv");
}

void ControlMessages::send(const ControlMessage& message, ProcessorId processor) {
  Sent* free = nullptr;
  for (const std::unique_ptr<Sent>& sent : sent_) {
    int done = 1;
    if (sent->request != MPI_REQUEST_NULL) MPI_Test(&sent->request, &done, MPI_STATUS_IGNORE);
    if (done != 0) {
      free = sent.get();
      break;
    }
  }
  if (free == nullptr) free = sent_.emplace_back(std::make_unique<Sent>()).get();
  free->message = message;
  met_[processor] = true;
  const std::size_t bytes = offsetof(ControlMessage, text) + message.length;
  check_mpi(
      MPI_Isend(&free->message, static_cast<int>(bytes), MPI_BYTE, processor.number(), kTag, ranks_, &free->request),
      "MPI_Isend");
}

void ControlMessages::receive(const std::function<void(const ControlMessage& message)>& read) {
  int count = 0;
  check_mpi(MPI_Testsome(static_cast<int>(kOpen), requests_.data(), &count, done_.data(), MPI_STATUSES_IGNORE),
            "MPI_Testsome");
  for (int i = 0; i < count; ++i) {
    const std::size_t place = at(done_[at(i)]);
    read(coming_[place]);
    listen(place);
  }
}

bool ControlMessages::all_sent() {
  bool all = true;
  for (const std::unique_ptr<Sent>& sent : sent_) {
    int done = 1;
    if (sent->request != MPI_REQUEST_NULL) MPI_Test(&sent->request, &done, MPI_STATUS_IGNORE);
    all = all && done != 0;
  }
  return all;
}

}  // namespace weft::comm

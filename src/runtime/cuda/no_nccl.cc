// Without NCCL's header.
#include "runtime/cuda/peers.h"
#include "weft/error.h"

namespace weft::cuda {

std::unique_ptr<Peers> peers_on(comm::Wire&) { return nullptr; }

std::unique_ptr<comm::Wire> make_nccl_wire(int) {
  throw UserError({.code = "nccl.not-built",
                   .what = "this build has no wire nccl: nccl.h was not there when it was built",
                   .where = "making the nccl wire",
                   .fix = "install libnccl-dev and build again"});
}

std::string describe_nccl() { return "no NCCL (nccl.h was not there when this was built)"; }

}  // namespace weft::cuda

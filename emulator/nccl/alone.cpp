#include "nccl/alone.h"

#include "core/entry.h"

namespace peakbench::emulator::nccl {
namespace {

int move(void* to, const void* from, std::uint64_t bytes) {
  return move_value(to, from, bytes) == MemoryResult::ok ? kSuccess : kInvalidArgument;
}

// Every rank's part is taken to be like one's own: what programs check with a gather (that ranks
// agree) holds.
int gather_own(const Communicator& self, const Collective& what) {
  auto* const to = static_cast<char*>(what.to);
  const auto bytes = what.bytes;
  if (self.ranks_unknown())
    return move(to + static_cast<std::uint64_t>(self.rank()) * bytes, what.from, bytes);
  int result = kSuccess;
  for (int rank = 0; rank < self.ranks() && result == kSuccess; ++rank)
    result = move(to + static_cast<std::uint64_t>(rank) * bytes, what.from, bytes);
  return result;
}

}  // namespace

int run_alone(const Communicator& self, const Collective& what) {
  const auto* from = static_cast<const char*>(what.from);
  switch (what.call) {
    case Call::all_gather:
      return gather_own(self, what);
    case Call::reduce_scatter:
      return move(what.to, from + static_cast<std::uint64_t>(self.rank()) * what.bytes, what.bytes);
    case Call::reduce:
      return receives(self, what) ? move(what.to, from, what.bytes) : kSuccess;
    default:
      return move(what.to, from, received_bytes(self, what));
  }
}

int split_alone(const Communicator& parent, int color, int key, CommunicatorPtr& out) {
  if (color < 0) return kSuccess;
  if (parent.ranks() > 1) enter(Fact::nccl_split_alone);
  const int rank = key >= 0 && key < parent.ranks() ? key : parent.rank();
  std::string problem;
  out = Communicator::create("", parent.ranks(), rank, parent.device(), &problem);
  if (parent.ranks() > 1) out->forget_ranks();
  return kSuccess;
}

}  // namespace peakbench::emulator::nccl

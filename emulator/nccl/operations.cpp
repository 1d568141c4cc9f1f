#include "nccl/operations.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/entry.h"
#include "core/own_ledger.h"
#include "core/values_hook.h"
#include "nccl/reduce.h"

namespace peakbench::emulator::nccl {
namespace {

// Where values are not computed, a receive is not put off until somebody reads: it waits so long.
constexpr auto kEagerPatience = std::chrono::seconds(2);

struct Group {
  int depth = 0;
  std::vector<std::function<void()>> at_end;
  // What a single rank broadcast in it: a communicator's id, and the call.
  std::map<std::uint64_t, Collective> given = {};
};
thread_local Group group;

std::uint64_t times_ranks(const Communicator& self, std::uint64_t bytes) {
  return bytes * static_cast<std::uint64_t>(self.ranks_unknown() ? 1 : self.ranks());
}

bool gives(const Communicator& self, const Collective& what) {
  return what.call != Call::broadcast || self.rank() == what.root;
}
bool receives(const Communicator& self, const Collective& what) {
  return what.call != Call::reduce || self.rank() == what.root;
}

// Whether a rank's part is less than all.
bool size_needs_ranks(Call call) {
  return call == Call::all_gather || call == Call::reduce_scatter || call == Call::all_to_all;
}

void count(Call call, std::uint64_t bytes, bool unsized = false) {
  if (bytes == 0) return;
  LedgerNcclCalls& row = ledger().nccl[static_cast<std::size_t>(call)];
  add_one(row.calls);
  unsized ? add_one(row.unsized_calls) : add(row.bytes, bytes);
}

std::uint64_t given_bytes(const Communicator& self, const Collective& what) {
  const bool parts = what.call == Call::reduce_scatter || what.call == Call::all_to_all;
  return parts ? times_ranks(self, what.bytes) : what.bytes;
}
std::uint64_t received_bytes(const Communicator& self, const Collective& what) {
  const bool parts = what.call == Call::all_gather || what.call == Call::all_to_all;
  return parts ? times_ranks(self, what.bytes) : what.bytes;
}

bool fits(const Communicator& self, const Collective& what) {
  const char* name = word_of(what.call);
  // A rank alone that knows not how many there are touches its own part.
  const auto rank = static_cast<std::uint64_t>(self.rank());
  const auto* from = static_cast<const char*>(what.from);
  const auto* to = static_cast<const char*>(what.to);
  if (self.ranks_unknown() && what.call == Call::reduce_scatter) from += rank * what.bytes;
  if (self.ranks_unknown() && what.call == Call::all_gather) to += rank * what.bytes;
  return (!gives(self, what) || is_whole(from, given_bytes(self, what), name)) &&
         (!receives(self, what) || is_whole(to, received_bytes(self, what), name));
}

Standing worse(Standing a, Standing b) {
  if (a == kPeakbenchUnknown || b == kPeakbenchUnknown) return kPeakbenchUnknown;
  return std::max(a, b);
}

// What is not known of bytes that are partly known goes with them, behind them.
void append(const Unsure& unsure, std::string& bytes) {
  for (const auto& [begin, end] : unsure) {
    const std::uint64_t range[2] = {begin, end};
    bytes.append(reinterpret_cast<const char*>(range), sizeof range);
  }
}

// Of `bytes` from `begin` on in what a rank gave, which come to lie from `at` on.
void add_unsure(const Posted& posted, std::uint64_t given, std::uint64_t begin, std::uint64_t bytes,
                std::uint64_t at, Unsure& unsure) {
  std::uint64_t range[2];
  for (auto from = given; from + sizeof range <= posted.bytes.size(); from += sizeof range) {
    std::memcpy(range, posted.bytes.data() + from, sizeof range);
    const auto first = std::max(range[0], begin), last = std::min(range[1], begin + bytes);
    if (first < last) unsure.emplace_back(first - begin + at, last - begin + at);
  }
}

// What a collective will have put in place, or what another rank sends.
struct Pending {
  CommunicatorPtr communicator;
  Collective what;
  std::uint64_t sequence;

  Standing resolve(char* to, Unsure& unsure) const {
    return what.call == Call::send ? receive(to, unsure) : collect(to, unsure);
  }

 private:
  Standing receive(char* to, Unsure& unsure) const {
    Posted posted;
    if (!communicator->sent_by(what.root, sequence, what.bytes, posted) || !posted.is_there())
      return kPeakbenchUnknown;
    std::memcpy(to, posted.bytes.data(), what.bytes);
    add_unsure(posted, what.bytes, 0, what.bytes, 0, unsure);
    return static_cast<Standing>(posted.record.standing);
  }

  // Those that are needed, in the order of the ranks; of a rank alone, its own for each.
  Standing gather(std::vector<Posted>& out) const {
    Standing standing = kPeakbenchKnown;
    const bool one = what.call == Call::broadcast;
    for (int rank = one ? what.root : 0; rank < (one ? what.root + 1 : communicator->ranks());
         ++rank) {
      Posted& posted = out.emplace_back();
      const auto about = given_bytes(*communicator, what);
      bool there = communicator->posted_by(rank, sequence, what.call, about, posted);
      if (!there && communicator->alone())
        there = communicator->posted_by(communicator->rank(), sequence, what.call, about, posted);
      if (!there || !posted.is_there()) return kPeakbenchUnknown;
      standing = worse(standing, static_cast<Standing>(posted.record.standing));
    }
    return standing;
  }

  Standing collect(char* to, Unsure& unsure) const {
    std::vector<Posted> all;
    const Standing standing = gather(all);
    if (standing == kPeakbenchUnknown) return standing;
    const auto own = static_cast<std::uint64_t>(communicator->rank()) * what.bytes;
    const bool reduces = what.call == Call::all_reduce || what.call == Call::reduce ||
                         what.call == Call::reduce_scatter;
    if (reduces) {
      if (standing == kPeakbenchPartly) return kPeakbenchUnknown;
      std::vector<const char*> from;
      for (const Posted& posted : all)
        from.push_back(posted.bytes.data() + (what.call == Call::reduce_scatter ? own : 0));
      return reduce(from, what.bytes, what.type, what.reduction, to) ? standing : kPeakbenchUnknown;
    }
    const auto begin = what.call == Call::all_to_all ? own : 0;
    std::uint64_t at = 0;
    for (const Posted& posted : all) {
      std::memcpy(to + at, posted.bytes.data() + begin, what.bytes);
      add_unsure(posted, given_bytes(*communicator, what), begin, what.bytes, at, unsure);
      at += what.bytes;
    }
    return standing;
  }
};

void put_now(const Pending& pending, std::uint64_t bytes) {
  std::string data(bytes, '\0');
  Unsure unsure;
  const Standing standing = pending.resolve(data.data(), unsure);
  put_value(pending.what.to, bytes, data.data(), standing);
}

void put_now_or_soon(const Pending& pending, std::uint64_t bytes, const Ticket& ticket) {
  const bool sent = ticket.source < -1;
  const auto until = std::chrono::steady_clock::now() + kEagerPatience;
  while (sent && !pending.communicator->is_done(ticket)) {
    if (std::chrono::steady_clock::now() > until) return forget_value(pending.what.to, bytes);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  put_now(pending, bytes);
}

// The destination gets what `pending` gives when somebody asks; or, where nobody computes values,
// at the end of the group.
void expect(Pending pending, std::uint64_t bytes, const Ticket& ticket) {
  auto* const held = new Pending(std::move(pending));
  const PeakbenchArrival arrival = {held,
                                    [](void* token, void* to, const PeakbenchUnsure* into) {
                                      Unsure unsure;
                                      const int standing = static_cast<Pending*>(token)->resolve(
                                          static_cast<char*>(to), unsure);
                                      for (const auto& [begin, end] : unsure)
                                        into->add(into->into, begin, end);
                                      return standing;
                                    },
                                    [](void* token) { delete static_cast<Pending*>(token); }};
  if (expect_value(held->what.to, bytes, arrival)) return;
  auto put = [held = std::shared_ptr<Pending>(held), bytes, ticket] {
    put_now_or_soon(*held, bytes, ticket);
  };
  if (group.depth > 0) {
    group.at_end.emplace_back(std::move(put));
  } else {
    put();
  }
}

Standing take(const void* from, std::uint64_t bytes, int type, std::string& out) {
  out.resize(bytes);
  Unsure unsure;
  const auto standing = take_value(from, bytes, is_floating(type), out.data(), unsure);
  if (standing == kPeakbenchPartly) append(unsure, out);
  return standing;
}

// What ranks send each other for real: as much as has values. Of more, nothing moves.
bool travels(std::uint64_t bytes, int type) {
  const auto largest = type == kBytes      ? kLargestCopied
                       : is_floating(type) ? kLargestValue
                                           : kLargestHostValue;
  return bytes > 0 && bytes <= largest;
}

int run_together(const CommunicatorPtr& self, const Collective& what, std::uint64_t stream) {
  const auto given = given_bytes(*self, what), received = received_bytes(*self, what);
  const bool moves = travels(std::max(given, received), what.type);
  std::string bytes;
  Standing standing = kPeakbenchUnknown;
  if (moves && gives(*self, what)) standing = take(what.from, given, what.type, bytes);
  const auto sequence = self->post(what.call, what.root, what.type, given, standing, bytes);
  const bool of_one = what.call == Call::broadcast;
  const Ticket ticket{self->id(), of_one ? what.root : -1, sequence};
  enqueue(stream, ticket);
  if (!receives(*self, what)) return self->error();
  const bool hopeless = gives(*self, what) && standing == kPeakbenchUnknown;
  if (!moves || hopeless) {
    forget_value(what.to, received);
  } else {
    expect({self, what, sequence}, received, ticket);
  }
  return self->error();
}

// A program that unpickles what arrives then fails with an error that names no reason.
void say_too_large(Call call, std::uint64_t bytes, int type) {
  static std::atomic<bool> said{false};
  if (type != kBytes || bytes <= kLargestCopied || said.exchange(true)) return;
  const auto in_mib = [](std::uint64_t size) {
    return static_cast<unsigned long long>((size + (1 << 20) - 1) >> 20);
  };
  std::fprintf(stderr,
               "peakbench emulator: NCCL: %s of %llu MiB: emulated ranks exchange at most %llu MiB "
               "of bytes in a call, so what arrives is unknown; pickled objects must be smaller\n",
               word_of(call), in_mib(bytes), in_mib(kLargestCopied));
}

std::string child_name(const Communicator& parent, std::uint64_t sequence, int color) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a, the same in every process
  for (const char c : parent.name() + "/" + std::to_string(sequence) + "/" + std::to_string(color))
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  char name[32];
  std::snprintf(name, sizeof name, "nccl-%016llx", static_cast<unsigned long long>(hash));
  return name;
}

struct Member {
  int color, key, rank;
};

// What NCCL's calls do for a rank whose peers do not exist: all are taken to be like it.

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

// PyTorch gathers tensors of several sizes, and from 2.15 on any list, by a group of broadcasts,
// one from each rank. The others gave what this rank gave, if it is as large.
int broadcast_alone(const Communicator& self, const Collective& what) {
  if (group.depth == 0) return move(what.to, what.from, what.bytes);
  if (what.root == self.rank()) {
    group.given[self.id()] = what;
    return move(what.to, what.from, what.bytes);
  }
  group.at_end.emplace_back([id = self.id(), what] {
    const auto own = group.given.find(id);
    if (own == group.given.end())
      move(what.to, what.from, what.bytes);
    else if (own->second.bytes == what.bytes)
      move(what.to, own->second.from, what.bytes);
    else
      forget_value(what.to, what.bytes);
  });
  return kSuccess;
}

int run_alone(const Communicator& self, const Collective& what) {
  const auto* from = static_cast<const char*>(what.from);
  switch (what.call) {
    case Call::broadcast:
      return broadcast_alone(self, what);
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

}  // namespace

int run(const CommunicatorPtr& self, const Collective& what, std::uint64_t stream) {
  if (!self || !element_bytes(what.type)) return kInvalidArgument;
  if (what.root >= self->ranks()) return kInvalidArgument;
  if (self->error()) return self->error();
  if (what.bytes == 0) return kSuccess;
  if (!fits(*self, what)) return kInvalidArgument;
  const auto size = std::max(given_bytes(*self, what), received_bytes(*self, what));
  count(what.call, size, self->ranks_unknown() && size_needs_ranks(what.call));
  say_too_large(what.call, size, what.type);
  wait_for_watchdog();
  mark_work(stream);
  return self->alone() ? run_alone(*self, what) : run_together(self, what, stream);
}

int send(const CommunicatorPtr& self, const void* from, std::uint64_t bytes, int type, int peer,
         std::uint64_t stream) {
  if (!self || peer < 0 || peer >= self->ranks()) return kInvalidArgument;
  if (self->error()) return self->error();
  if (bytes && !is_whole(from, bytes, word_of(Call::send))) return kInvalidArgument;
  count(Call::send, bytes);
  say_too_large(Call::send, bytes, type);
  wait_for_watchdog();
  mark_work(stream);
  if (self->alone()) return kSuccess;
  std::string data;
  const auto standing = travels(bytes, type) ? take(from, bytes, type, data) : kPeakbenchUnknown;
  self->post(Call::send, peer, type, bytes, standing, data);
  return self->error();
}

int receive(const CommunicatorPtr& self, void* to, std::uint64_t bytes, int type, int peer,
            std::uint64_t stream) {
  if (!self || peer < 0 || peer >= self->ranks()) return kInvalidArgument;
  if (self->error()) return self->error();
  if (bytes && !is_whole(to, bytes, word_of(Call::receive))) return kInvalidArgument;
  count(Call::receive, bytes);
  wait_for_watchdog();
  mark_work(stream);
  if (self->alone()) {
    forget_value(to, bytes);
    return kSuccess;
  }
  const auto sequence = self->receive_from(peer);
  const Ticket ticket{self->id(), -2 - peer, sequence};
  enqueue(stream, ticket);
  if (travels(bytes, type)) {
    expect({self, {Call::send, nullptr, to, bytes, type, 0, peer}, sequence}, bytes, ticket);
  } else {
    forget_value(to, bytes);
  }
  return self->error();
}

int split(const CommunicatorPtr& parent, int color, int key, CommunicatorPtr& out) {
  if (!parent) return kInvalidArgument;
  if (parent->error()) return parent->error();
  if (parent->alone()) return split_alone(*parent, color, key, out);
  const int own[2] = {color, key};
  const std::string said(reinterpret_cast<const char*>(own), sizeof own);
  const auto sequence = parent->post(Call::split, -1, 0, sizeof own, kPeakbenchKnown, said);
  std::vector<Member> members;
  int rank_there = -1;
  for (int rank = 0; rank < parent->ranks(); ++rank) {
    Posted posted;
    if (!parent->posted_by(rank, sequence, Call::split, sizeof own, posted))
      return parent->alone() ? split_alone(*parent, color, key, out) : parent->error();
    Member member{0, 0, rank};
    std::memcpy(&member, posted.bytes.data(), sizeof own);
    if (member.color == color) members.push_back(member);
  }
  if (color < 0) return kSuccess;
  std::ranges::stable_sort(members, {}, &Member::key);
  for (std::size_t i = 0; i < members.size(); ++i)
    if (members[i].rank == parent->rank()) rank_there = static_cast<int>(i);
  std::string problem;
  out = Communicator::create(child_name(*parent, sequence, color), static_cast<int>(members.size()),
                             rank_there, parent->device(), &problem);
  return out ? kSuccess : parent->fail(kInvalidUsage, problem);
}

void begin_group() { ++group.depth; }

int end_group() {
  if (group.depth == 0) return kInvalidUsage;
  if (--group.depth > 0) return kSuccess;
  auto puts = std::move(group.at_end);
  group.at_end.clear();
  for (const auto& put : puts) put();
  group.given.clear();
  return kSuccess;
}

}  // namespace peakbench::emulator::nccl

#include "interpreter/collector.h"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "interpreter/python_api.h"

namespace peakbench::interpreter {
namespace {

// struct gc_generation of Include/internal/pycore_gc.h (pycore_interp_structs.h), three of them.
struct Generation {
  void *next, *previous;
  int threshold, count;
};
constexpr std::size_t kLooked = std::size_t{1} << 20;  // of the interpreter's state

int* count_place = nullptr;

// As far as there is memory.
std::vector<char> bytes_from(void* start) {
  std::vector<char> bytes(kLooked);
  const iovec here{bytes.data(), bytes.size()};
  std::vector<iovec> there;
  constexpr std::size_t kPage = 4096;
  auto* const from = static_cast<char*>(start);
  const auto in_page = reinterpret_cast<std::uintptr_t>(from) % kPage;
  there.push_back({from, kPage - in_page});
  for (std::size_t at = kPage - in_page; at + kPage <= kLooked; at += kPage)
    there.push_back({from + at, kPage});
  const auto got = process_vm_readv(getpid(), &here, 1, there.data(), there.size(), 0);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

}  // namespace

void find_collector_count(int first, int second, int third) {
  const Python& p = python();
  if (!p.interpreter || !p.disable_collector || !p.enable_collector) return;
  auto* const state = static_cast<char*>(p.interpreter());
  const auto bytes = bytes_from(state);
  for (std::size_t at = 0; at + 3 * sizeof(Generation) <= bytes.size(); at += sizeof(void*)) {
    std::array<Generation, 3> generations;
    std::memcpy(generations.data(), bytes.data() + at, sizeof generations);
    if (generations[0].threshold != first || generations[1].threshold != second ||
        generations[2].threshold != third)
      continue;
    count_place = &reinterpret_cast<Generation*>(state + at)->count;
    return;
  }
}

void set_collector_count(int count) {
  if (count_place) *count_place = count;
}

CollectorHeld::CollectorHeld()
    : ran_(python().disable_collector && python().disable_collector() != 0) {}
CollectorHeld::~CollectorHeld() {
  if (ran_) python().enable_collector();
}

UncountedObjects::UncountedObjects() : count_(count_place ? *count_place : 0) {}
UncountedObjects::~UncountedObjects() { set_collector_count(count_); }

}  // namespace peakbench::interpreter

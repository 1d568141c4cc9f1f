#include "byte_counter.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <fstream>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <unordered_map>

namespace peakbench::test {
namespace {

struct Change {
  std::size_t phase;
  std::int64_t bytes, alive;
  bool own_thread;
};

// Blocks may be freed by threads that outlive main: never destroyed.
struct Ledger {
  std::mutex mutex;
  std::unordered_map<void*, std::int64_t> sizes;
  std::vector<std::string> phases{"build"};
  std::vector<Change> changes;
  std::int64_t alive = 0, peak = 0;
  const std::thread::id own_thread = std::this_thread::get_id();

  void add(std::int64_t bytes) {
    alive += bytes;
    peak = std::max(peak, alive);
    changes.push_back({phases.size() - 1, bytes, alive, std::this_thread::get_id() == own_thread});
  }
};

Ledger& ledger() {
  static auto* the_ledger = new Ledger;
  return *the_ledger;
}

void release(void* pointer) {
  if (!pointer) return;
  {
    const std::lock_guard lock(ledger().mutex);
    const auto found = ledger().sizes.find(pointer);
    ledger().add(-found->second);
    ledger().sizes.erase(found);
  }
  c10::free_cpu(pointer);
}

class CountingAllocator : public at::Allocator {
 public:
  at::DataPtr allocate(std::size_t size) override {
    void* pointer = c10::alloc_cpu(size);
    if (pointer) {
      const std::lock_guard lock(ledger().mutex);
      ledger().sizes[pointer] = static_cast<std::int64_t>(size);
      ledger().add(static_cast<std::int64_t>(size));
    }
    return {pointer, pointer, &release, at::Device(at::kCPU)};
  }
  at::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    default_copy_data(to, from, count);
  }
};

}  // namespace

ByteCounter& ByteCounter::install() {
  static auto* allocator = new CountingAllocator;
  ledger();  // made on this thread
  static ByteCounter counter;
  c10::SetCPUAllocator(allocator, /*priority=*/1);
  return counter;
}

void ByteCounter::begin_phase(const std::string& name) {
  const std::lock_guard lock(ledger().mutex);
  ledger().phases.push_back(name);
  ledger().peak = ledger().alive;
}

std::int64_t ByteCounter::alive_bytes() const {
  const std::lock_guard lock(ledger().mutex);
  return ledger().alive;
}

std::int64_t ByteCounter::peak_bytes() const {
  const std::lock_guard lock(ledger().mutex);
  return ledger().peak;
}

void ByteCounter::write_changes(const std::string& path) const {
  std::ofstream file(path);
  const std::lock_guard lock(ledger().mutex);
  for (const Change& change : ledger().changes) {
    file << ledger().phases[change.phase] << ' ' << change.bytes << ' ' << change.alive
         << (change.own_thread ? " own\n" : " other\n");
  }
  if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace peakbench::test

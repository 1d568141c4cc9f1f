#include "core/values_hook.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "core/callers.h"
#include "core/late_streams.h"
#include "core/machine.h"
#include "core/own_ledger.h"
#include "core/state.h"

namespace peakbench::emulator {
namespace {

std::atomic<PeakbenchReader> reader{nullptr};
std::atomic<PeakbenchWorkListener> work_listener{nullptr};
std::atomic<PeakbenchAllocated> allocated{nullptr};
std::atomic<PeakbenchAskCudnn> ask_cudnn{nullptr};
std::atomic<PeakbenchPieceListener> piece_listener{nullptr};
thread_local int own_work = 0;

// Of the wheel that a library lies in: torch/lib/libtorch_cpu.so has torch/version.py.
std::string version_beside(const std::string& library) {
  const auto folder = library.substr(0, library.rfind('/'));
  std::ifstream file(folder + "/../version.py");
  for (std::string line; std::getline(file, line);) {
    constexpr const char* kKey = "__version__ = '";
    if (line.rfind(kKey, 0) != 0) continue;
    const auto start = std::strlen(kKey);
    return line.substr(start, line.find('\'', start) - start);
  }
  return "";
}

void cannot_compute(const std::string& why) {
  Ledger& entry = ledger();
  entry.computing = Computing::unavailable;
  std::snprintf(entry.computing_note, sizeof entry.computing_note, "%s", why.c_str());
}

// Loads values/, which makes itself known by peakbench_emulator_listen.
void load_values(const char* library, const std::string& libtorch) {
  const char* wanted = std::getenv(kValuesVersionVariable);
  const std::string found = version_beside(libtorch);
  if (found != (wanted ? wanted : "")) {
    return cannot_compute("the program's PyTorch is " +
                          (found.empty() ? "of an unknown version" : found) +
                          ", and values are computed for " + (wanted ? wanted : "none"));
  }
  const char* compute = std::getenv(kComputeVariable);
  ledger().computing = compute && *compute == '1' ? Computing::on : Computing::off;
  if (dlopen(library, RTLD_NOW | RTLD_LOCAL)) return;
  const char* error = dlerror();
  cannot_compute(error ? error : library);
}

void look_at_pytorch() {
  if (loaded_library("libc10_cuda.so").empty()) return;
  state().allocator = Allocator::unwatched;
  if (const char* problem = std::getenv(kValuesProblemVariable); problem && *problem)
    return cannot_compute(problem);
  const char* library = std::getenv(kValuesVariable);
  if (!library || !*library) {
    ledger().computing = Computing::not_asked;
    return;
  }
  load_values(library, loaded_library("libtorch_cpu.so"));
}

}  // namespace

void find_pytorch() {
  static std::once_flag once;
  // A process without a card has nothing to compute; a forked one has no CUDA.
  if (machine_state() == MachineState::ready) std::call_once(once, look_at_pytorch);
}

namespace {

PeakbenchStanding standing_of(Answer answer) {
  if (answer == Answer::kept) return kPeakbenchKnown;
  return answer == Answer::zeros ? kPeakbenchUnknown : kPeakbenchSubstitute;
}

}  // namespace

ReadKind ask_reader(void* to, const void* from, std::uint64_t bytes, Answer& answer) {
  int kind = 0;
  const auto ask = reader.load(std::memory_order_acquire);
  if (!ask) return ReadKind::bytes;
  switch (ask(reinterpret_cast<std::uint64_t>(from), to, bytes, standing_of(answer), &kind)) {
    case kPeakbenchKnown:
      answer = Answer::kept;
      break;
    case kPeakbenchSubstitute:
      answer = Answer::substitute;
      break;
    case kPeakbenchUnknown:
      answer = std::max(answer, Answer::uncertain);
      break;
    default:
      break;
  }
  return static_cast<ReadKind>(kind);
}

std::optional<CudnnSettings> cudnn_settings() {
  const auto ask = ask_cudnn.load(std::memory_order_acquire);
  int tf32 = 0, deterministic = 0, benchmark = 0;
  if (!ask || !ask(&tf32, &deterministic, &benchmark)) return std::nullopt;
  return CudnnSettings{tf32 != 0, deterministic != 0, benchmark != 0};
}

bool allocated_now(int device, std::uint64_t& bytes) {
  const auto ask = allocated.load(std::memory_order_acquire);
  if (ask) bytes = ask(device);
  return ask != nullptr;
}

void tell_of_piece(std::uint64_t base, std::uint64_t bytes) {
  ledger().last_allocation = ledger_now();
  if (const auto listener = piece_listener.load(std::memory_order_acquire)) listener(base, bytes);
}

void tell_of_work(PeakbenchWork work, const void* caller, const std::vector<std::uint64_t>* words) {
  state().device_work.fetch_add(1, std::memory_order_relaxed);
  if (const auto listener = work_listener.load(std::memory_order_acquire))
    listener(words ? words->data() : nullptr, words ? static_cast<int>(words->size()) : -1, work,
             caller);
}

}  // namespace peakbench::emulator

extern "C" void peakbench_emulator_listen(PeakbenchReader reads, PeakbenchWorkListener work) {
  peakbench::emulator::reader = reads;
  peakbench::emulator::work_listener = work;
}

extern "C" void peakbench_emulator_watch_allocator(void) {
  using namespace peakbench::emulator;
  auto [s, lock] = LockedState{};
  for (auto& [base, range] : s.memory.ranges) {
    if (range.kept) range.kept->forget(0, range.bytes);
  }
  s.allocator = Allocator::watched;
}

extern "C" void peakbench_emulator_handed_out(std::uint64_t base, std::uint64_t bytes) {
  using namespace peakbench::emulator;
  ledger().last_allocation = ledger_now();
  forget_kept_bytes(base, bytes);
}

void peakbench::emulator::forget_kept_bytes(std::uint64_t base, std::uint64_t bytes) {
  auto [s, lock] = LockedState{};
  for (std::uint64_t done = 0; done < bytes;) {
    const auto range = find_range(s, reinterpret_cast<const void*>(base + done));
    if (range == s.memory.ranges.end()) return;
    const auto offset = base + done - range->first;
    if (range->second.kept) range->second.kept->forget(offset, bytes - done);
    done += range->second.bytes - offset;
  }
}

extern "C" void peakbench_emulator_counted(int device, std::uint64_t peak_allocated_bytes,
                                           std::uint64_t peak_reserved_bytes) {
  auto& ledger = peakbench::emulator::ledger();
  if (static_cast<std::uint32_t>(device) >= ledger.device_count) return;
  auto& row = ledger.devices[device];
  ledger.counts_known = 1;
  row.peak_allocated_bytes = std::max(row.peak_allocated_bytes, peak_allocated_bytes);
  row.peak_reserved_bytes = std::max(row.peak_reserved_bytes, peak_reserved_bytes);
}

extern "C" void peakbench_emulator_needed(int device, std::uint64_t bytes) {
  auto& ledger = peakbench::emulator::ledger();
  if (static_cast<std::uint32_t>(device) >= ledger.device_count) return;
  auto& row = ledger.devices[device];
  ++row.out_of_memory_calls;
  row.last_needed_bytes = bytes;
  row.largest_needed_bytes = std::max(row.largest_needed_bytes, bytes);
  ledger.launches_at_refusal = launches_of(ledger);
}

extern "C" void peakbench_emulator_ran_out() {
  peakbench::emulator::complete_last_place(peakbench::emulator::ledger().out_of_memory);
}

extern "C" void peakbench_emulator_watch_pools(PeakbenchPieceListener listener) {
  peakbench::emulator::piece_listener = listener;
}

extern "C" void peakbench_emulator_ask_pytorch(PeakbenchAllocated ask, PeakbenchAskCudnn settings) {
  peakbench::emulator::allocated = ask;
  peakbench::emulator::ask_cudnn = settings;
}

extern "C" void peakbench_emulator_own_work(int begins) {
  peakbench::emulator::own_work += begins ? 1 : -1;
}

extern "C" int peakbench_emulator_is_own_work(void) {
  return peakbench::emulator::own_work > 0 ? 1 : 0;
}

extern "C" void peakbench_emulator_decided(int kind, std::uint64_t bytes) {
  using namespace peakbench::emulator;
  enter_read_back(ledger(), bytes, Answer::substitute, static_cast<ReadKind>(kind));
}

extern "C" void peakbench_emulator_made_up_unbounded(void) {
  using namespace peakbench::emulator;
  add_one(ledger().unbounded_integers);
}

extern "C" void peakbench_emulator_read_unbounded(void) {
  peakbench::emulator::reads_unbounded() = true;
}

extern "C" std::uint64_t peakbench_emulator_reads_here(void) {
  static std::mutex mutex;
  static auto* const reads = new std::map<std::string, std::uint64_t>;
  char place[sizeof(peakbench::emulator::LedgerReadBack::place)];
  peakbench::emulator::find_python_place(place, sizeof place, nullptr);
  const std::lock_guard lock(mutex);
  return (*reads)[place]++;
}

extern "C" void peakbench_emulator_written(std::uint64_t base) {
  using namespace peakbench::emulator;
  if (find_place(reinterpret_cast<const void*>(base)).is_locked()) enter(Fact::pinned_written);
}

extern "C" PeakbenchIssued peakbench_emulator_in_flight(std::uint64_t stream, const void* to) {
  using namespace peakbench::emulator;
  return find_place(to).is_locked() ? issued_now(stream) : PeakbenchIssued{};
}

extern "C" int peakbench_emulator_is_done(PeakbenchIssued issued) {
  return peakbench::emulator::is_known_done(issued);
}

extern "C" int peakbench_emulator_is_before(PeakbenchIssued issued, std::uint64_t stream) {
  return peakbench::emulator::is_ordered_before(issued, stream);
}

extern "C" void peakbench_emulator_unspecified(const char* operation, const char* what) {
  using namespace peakbench::emulator;
  char place[64] = "";
  find_python_place(place, sizeof place);
  enter(Fact::open_choice, {.function = operation, .what = what, .place = place});
}

extern "C" void peakbench_emulator_failed(const char* why) {
  using namespace peakbench::emulator;
  enter(Fact::value_failed, {.what = why});
}

extern "C" int peakbench_emulator_has_tf32(void) { return peakbench::emulator::card().major >= 8; }

extern "C" void peakbench_emulator_cannot_compute(const char* why) {
  using namespace peakbench::emulator;
  State& s = state();
  {
    std::lock_guard lock(s.mutex);
    s.allocator = Allocator::unwatched;
  }
  cannot_compute(why);
}

#include "recording/tracer.h"

#include <ATen/SequenceNumber.h>
#include <ATen/core/grad_mode.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDADeviceAssertionHost.h>
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "interpreter/python_api.h"
#include "recording/python_calls.h"

namespace peakbench::recording {

using namespace interpreter;
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

constexpr std::size_t kAll = 0;  // StatType::AGGREGATE, which releases declare in different places

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Entered {
  std::int32_t module;
  bool recomputes;  // a recomputation began with it
};

struct ThreadPlace {
  std::int32_t thread = next++;
  std::vector<Entered> modules;
  int nodes = 0, operators = 0, recomputations = 0;
  bool unplaced = false;
  std::int32_t call = 0;       // of a model; 0: none
  std::uint64_t sequence = 0;  // of autograd's nodes, as the call began

  static std::atomic<std::int32_t> next;
};
std::atomic<std::int32_t> ThreadPlace::next{0};
thread_local ThreadPlace place;

Record of(Tag tag) {
  Record record{};
  record.tag = tag;
  record.thread = place.thread;
  return record;
}

void on_workspace(const void* address, const char* library) {
  auto& tracer = Tracer::one();
  if (address == nullptr || !tracer.is_recording()) return;
  const auto none = tracer.journal().text("");
  tracer.name(reinterpret_cast<std::uint64_t>(address), trace::Role::kWorkspace,
              tracer.journal().text(library), none, none);
}

}  // namespace

Tracer& Tracer::one() {
  static auto* const tracer = new Tracer;  // outlives every allocator
  return *tracer;
}

bool Tracer::open(const std::string& folder, bool with_times, std::uint64_t most_bytes) {
  with_times_ = with_times;
  start_ns_ = now_ns();
  if (!journal_.open(folder, most_bytes)) return false;
  look_for_rank();
  pthread_atfork(nullptr, nullptr, [] { Tracer::one().journal_.forget(); });
  static const pid_t opened = getpid();
  std::atexit([] {
    if (getpid() == opened) Tracer::one().journal_.end();
  });
  return true;
}

// A child of multiprocessing may set RANK after it has imported PyTorch.
void Tracer::look_for_rank() {
  const char* text = std::getenv("RANK");
  const auto* const end = text ? text + std::strlen(text) : nullptr;
  std::int32_t rank = -1;
  const auto [read, error] = std::from_chars(text, end, rank);
  if (error == std::errc{} && read == end && rank >= 0)
    journal_.set_rank(rank, RankSource::kEnvironment);
}

void Tracer::join_group(std::int32_t rank, std::int32_t ranks) {
  journal_.set_rank(rank, RankSource::kProcessGroup);
  using Tell = void (*)(int, int);
  if (const auto tell = reinterpret_cast<Tell>(dlsym(RTLD_DEFAULT, "peakbench_emulator_is_rank")))
    tell(rank, ranks);
}

int Tracer::add_space(const std::string& name) {
  auto record = of(Tag::kSpace);
  record.space = static_cast<std::int16_t>(spaces_);
  record.named_space.name = journal_.text(name);
  journal_.add(record);
  return spaces_++;
}

void Tracer::add_event(Record& record, trace::EventKind kind, int space) {
  record.kind = static_cast<std::uint8_t>(kind);
  record.space = static_cast<std::int16_t>(space);
  record.event.module = current_module();
  if (with_times_) record.event.time_ns = now_ns() - start_ns_;
  journal_.add(record);
  if (kind != trace::EventKind::kAlloc && kind != trace::EventKind::kOutOfMemory) return;
  place.unplaced = true;
  // No operator's end will say where: code that PyTorch's compiler made asks the allocator itself.
  if (place.operators == 0)
    place_allocations(holds_python() ? python_stack(journal_) : -1, -1, current_module());
  else if (holds_python())
    note_hook();  // a storage that is resized, of which no operator knows
}

void Tracer::allocated(int space, std::uint64_t address, std::int64_t requested_bytes,
                       std::int64_t block_bytes, std::int64_t) {
  journal_.mark_forked();
  auto record = of(Tag::kEvent);
  record.event = {-1, 0, address, requested_bytes, block_bytes, -1, -1, 0};
  add_event(record, trace::EventKind::kAlloc, space);
}

void Tracer::free_requested(int space, std::uint64_t address) {
  event(trace::EventKind::kFreeRequested, space, address, 0, 0);
}
void Tracer::freed(int space, std::uint64_t address) {
  event(trace::EventKind::kFree, space, address, 0, 0);
}
void Tracer::event(trace::EventKind kind, int space, std::uint64_t address, std::int64_t bytes,
                   std::int64_t) {
  auto record = of(Tag::kEvent);
  record.event = {-1, 0, address, bytes, bytes, -1, -1, 0};
  add_event(record, kind, space);
}

// The allocator's own counts say how large the block of the allocation before was: it is told of an
// allocation before it counts it, under its lock.
void Tracer::on_cuda(const recording::AllocatorEvent& event) {
  if (!is_recording()) return;
  const auto stats = allocator::getDeviceStats(static_cast<c10::DeviceIndex>(event.device));
  const auto& counted = stats.allocated_bytes[kAll];
  auto record = of(Tag::kEvent);
  record.event = {-1, 0, event.address, event.bytes, -1, counted.allocated, counted.current, 0};
  if (event.pool != decltype(event.pool){}) {
    const std::lock_guard lock(pools_mutex_);
    record.event.pool = pools_.try_emplace(event.pool, pools_.size() + 1).first->second;
  }
  add_event(record, event.kind, first_cuda_ + event.device);
}

void Tracer::attach_cuda() {
  if (!is_recording() || first_cuda_ >= 0) return;
  look_for_rank();
  cuda_devices_ = c10::cuda::device_count();
  for (int i = 0; i < cuda_devices_; ++i) {
    const int space = add_space("cuda:" + std::to_string(i));
    if (i == 0) first_cuda_ = space;
  }
  recording::listen_to_allocator(
      [this](const recording::AllocatorEvent& event) { on_cuda(event); });
  // On an emulated card the stand-ins of the libraries say which workspaces they are given.
  using Watch = void (*)(void (*)(const void*, const char*));
  if (const auto watch =
          reinterpret_cast<Watch>(dlsym(RTLD_DEFAULT, "peakbench_emulator_watch_workspaces")))
    watch(on_workspace);
  // Of what runs at the exit the latest that was registered is the first: PyTorch's calls into CUDA
  // ask a registry, which must be there, and which they make when it is first asked.
  c10::cuda::CUDAKernelLaunchRegistry::get_singleton_ref();
  static const pid_t attached = getpid();
  std::atexit([] {
    if (getpid() == attached) Tracer::one().count_cuda();
  });
}

void Tracer::count_cuda() {
  for (int i = 0; i < cuda_devices_ && first_cuda_ >= 0; ++i) {
    const auto stats = allocator::getDeviceStats(static_cast<c10::DeviceIndex>(i));
    auto record = of(Tag::kFinal);
    record.space = static_cast<std::int16_t>(first_cuda_ + i);
    const auto& allocated = stats.allocated_bytes[kAll];
    record.final = {allocated.allocated, allocated.current, allocated.peak,
                    stats.reserved_bytes[kAll].peak};
    journal_.add(record);
  }
}

void Tracer::enter_module(std::int32_t module) {
  const bool recomputes =
      place.nodes > 0 && place.recomputations == 0 && at::GradMode::is_enabled();
  place.modules.push_back({module, recomputes});
  if (!recomputes) return;
  mark(Mark::kRecomputationBegins, 0);
  ++place.recomputations;
}

void Tracer::exit_module() {
  if (place.modules.empty()) return;
  if (place.modules.back().recomputes) {
    --place.recomputations;
    mark(Mark::kRecomputationEnds, 0);
  }
  place.modules.pop_back();
}

void Tracer::mark(Mark mark, std::int32_t value) {
  auto record = of(Tag::kMark);
  record.kind = static_cast<std::uint8_t>(mark);
  record.mark.value = value;
  if (mark == Mark::kForwardBegins || mark == Mark::kEvaluationBegins ||
      mark == Mark::kGenerationBegins) {
    place.call = ++calls_;
    place.sequence = at::sequence_number::peek();
  }
  record.mark.call = place.call;
  if (mark == Mark::kCallEnds) {
    record.mark.value = at::sequence_number::peek() > place.sequence ? 1 : 0;
    place.call = 0;
  }
  journal_.add(record);
}

void Tracer::mark_differentiated(std::int32_t call) {
  auto record = of(Tag::kMark);
  record.kind = static_cast<std::uint8_t>(Mark::kDifferentiates);
  record.mark.call = call;
  journal_.add(record);
}

void Tracer::mark_copy(Copy copy, std::uint64_t storage) {
  auto record = of(Tag::kMark);
  record.kind = static_cast<std::uint8_t>(Mark::kCopyBegins);
  record.mark.value = static_cast<std::int32_t>(copy);
  record.mark.storage = storage;
  journal_.add(record);
}

void Tracer::mark_joined(bool is_first, std::uint64_t storage) {
  auto record = of(Tag::kMark);
  record.kind = static_cast<std::uint8_t>(Mark::kJoins);
  record.mark.value = is_first ? 0 : 1;
  record.mark.storage = storage;
  journal_.add(record);
}

std::uint64_t Tracer::begin_range(std::int32_t name, RangeSource source) {
  if (!is_recording()) return 0;
  auto record = of(Tag::kRange);
  record.kind = static_cast<std::uint8_t>(source);
  record.range = {name, python_stack(journal_), ++ranges_};
  journal_.add(record);
  return record.range.number;
}

void Tracer::end_range(std::uint64_t number) {
  if (number == 0) return;
  auto record = of(Tag::kRange);
  record.range = {.name = -1, .stack = -1, .number = number};
  journal_.add(record);
}

void Tracer::name(std::uint64_t address, trace::Role role, std::int32_t name, std::int32_t shape,
                  std::int32_t dtype) {
  if (address == 0) return;
  auto record = of(Tag::kName);
  record.kind = static_cast<std::uint8_t>(role);
  record.name = {name, shape, address, dtype};
  journal_.add(record);
}

std::int32_t current_module() { return place.modules.empty() ? -1 : place.modules.back().module; }
std::int32_t current_call() { return place.call; }
bool has_unplaced() { return place.unplaced; }

void place_allocations(std::int32_t stack, std::int32_t op, std::int32_t module,
                       std::int32_t hook) {
  auto record = of(Tag::kWhere);
  record.where = {stack, op, module, hook};
  Tracer::one().journal().add(record);
  place.unplaced = false;
}

bool is_recomputing() { return place.recomputations > 0; }
void enter_node() { ++place.nodes; }
void exit_node() { --place.nodes; }
int open_nodes() { return place.nodes; }
void count_operator(int by) { place.operators += by; }

}  // namespace peakbench::recording

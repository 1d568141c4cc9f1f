// Listening: to the operators that PyTorch calls, to its allocator, and to what the host reads.
#include <ATen/record_function.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "core/facts.h"
#include "core/values_hook.h"
#include "recording/cuda/allocator_events.h"
#include "trace/trace.h"
#include "values/counts.h"
#include "values/host.h"
#include "values/outcomes.h"
#include "values/patch.h"
#include "values/record.h"
#include "values/sizes.h"
#include "values/storages.h"

namespace peakbench::values {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;
using emulator::ReadKind;

bool computes = false;
std::atomic<bool> stopped{false};

struct Thread {
  std::vector<const at::RecordFunction*> functions;  // under way on this thread, one in another
  int inside_writer = 0;  // below an operator that writes in place: it is recorded as a whole
  int inside_reader = 0;  // below one whose size is computed beforehand
  at::ScalarType reading = at::ScalarType::Undefined;
  bool reading_storage = false;
  bool copying = false;  // the read is a tensor's, onto the host
  Asking asking;
  const void* read_to = nullptr;        // where the read under way puts what it reads
  bool read_known = true;               // whether all of it was known
  Purpose read_purpose = Purpose::any;  // and what it is good for otherwise
  // The tensor that was set to a storage last; kept weakly, so that no other gets its address.
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> shows_storage{
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>()};
};
thread_local Thread thread;

struct Under : at::ObserverContext {
  Call call;
  Size size;
  const Size* told_before = nullptr;
  at::ScalarType reading_before = at::ScalarType::Undefined;
  // Of an operator that leaves writing to others: what its targets held before.
  std::vector<std::pair<at::Tensor, ValuePtr>> untouched;
  at::Tensor read_into;                  // the tensor of the host that a copy to it fills
  std::optional<std::uint64_t> read_on;  // the stream of one that the host does not wait for
  HostCall on_host;
  at::Tensor resized;
  ValuePtr resized_value;  // what it held
  std::uint64_t resized_base = 0;
  bool records = false, writer = false, reader = false, scalar = false, quiet = false;
  bool collective = false, truth = false;
};

// Python looks at a tensor of the host past PyTorch's operators: tolist, numpy.
bool has_python() {
  static const bool found = dlsym(RTLD_DEFAULT, "Py_IsInitialized") != nullptr;
  return found;
}

void on_allocator(const recording::AllocatorEvent& event) {
  count(event);
  const bool handed_out = event.kind == trace::EventKind::kAlloc;
  if (!handed_out && event.kind != trace::EventKind::kFree) return;
  const auto bytes = static_cast<std::uint64_t>(event.bytes);
  {
    const std::lock_guard lock(Storages::all().mutex());
    Storages::all().forget(event.address, bytes);
  }
  if (handed_out) peakbench_emulator_handed_out(event.address, bytes);
}

void on_piece(std::uint64_t base, std::uint64_t bytes) {
  const std::lock_guard lock(Storages::all().mutex());
  Storages::all().forget(base, bytes);
}

// Of CUDA's own memory pools, the stand-ins know what they hand out.
void watch() {
  peakbench_emulator_watch_allocator();
  if (allocator::get()->name() == "cudaMallocAsync") {
    peakbench_emulator_watch_pools(on_piece);
    return answer_questions();
  }
  recording::listen_to_allocator(on_allocator);
  start_counting();
}

void stop(const char* why) {
  stopped = true;
  peakbench_emulator_listen(nullptr, nullptr);
  peakbench_emulator_exchange(nullptr);
  peakbench_emulator_cannot_compute(why);
}

// As soon as there is an allocator to listen to.
bool watches_allocator() {
  static std::atomic<bool> watched{false};
  if (watched.load(std::memory_order_acquire)) return true;
  if (!allocator::get() || !allocator::get()->initialized()) return false;
  static std::mutex once;
  const std::lock_guard lock(once);
  if (watched) return true;
  try {
    watch();
    watched = true;
  } catch (const std::exception&) {
    stop(
        "PyTorch's allocator (PYTORCH_CUDA_ALLOC_CONF, or one of the program's own) does not say "
        "when it hands memory out");
  }
  return watched;
}

// What a read of the device below this operator reads.
std::unique_ptr<at::ObserverContext> start_read(c10::ArrayRef<const c10::IValue> arguments,
                                                std::size_t source) {
  auto under = std::make_unique<Under>();
  under->scalar = true;
  under->reading_before = thread.reading;
  const at::Tensor& read = arguments[source].toTensor();
  thread.reading = read.scalar_type();
  // torch.save shows them as bytes; what another process sent is set to its storage, too.
  thread.reading_storage = read.scalar_type() == at::kByte &&
                           read.unsafeGetTensorImpl() == thread.shows_storage._unsafe_get_target();
  thread.copying = source != 0;
  thread.read_known = true;
  thread.read_purpose = Purpose::any;
  thread.read_to = nullptr;
  if (source == 0) return under;
  under->read_into = arguments[0].toTensor();
  if (arguments.size() > 2 && arguments[2].isBool() && arguments[2].toBool())
    under->read_on = reinterpret_cast<std::uint64_t>(
        c10::cuda::getCurrentCUDAStream(read.device().index()).stream());
  return under;
}

// What the host reads there before it has waited is what was there before, with all likelihood.
void leave_in_flight(const at::Tensor& into, std::uint64_t stream) {
  if (!is_plain(into)) return;
  const auto* begin = static_cast<const char*>(into.storage().data());
  const auto* at = static_cast<const char*>(thread.read_to);
  // Where types differ, the copy is to other memory, and the host waits for that.
  if (!at || at < begin || at >= begin + into.storage().nbytes()) return;
  const auto copy = peakbench_emulator_in_flight(stream, at);
  if (copy.number != 0) mark_in_flight(into, copy);
}

// Integers and truths that are not known are told of when they are read; numbers, when something
// is decided by them on the host. A storage as it is goes to a file.
void end_read(const Under& under) {
  const at::Tensor& into = under.read_into;
  const bool told_when_asked = !c10::isIntegralType(thread.reading, true) || !has_python();
  if (into.defined() && told_when_asked && !thread.reading_storage) {
    if (!thread.read_known) {
      mark_on_host(into, thread.read_purpose);
    } else if (is_plain(into) && covers_storage(into)) {
      unmark_on_host(into);
    }
  }
  if (under.read_on) leave_in_flight(into, *under.read_on);
  thread.reading = under.reading_before;
  thread.reading_storage = thread.copying = false;
}

std::unique_ptr<at::ObserverContext> start_truth() {
  auto under = std::make_unique<Under>();
  under->truth = true;
  ++thread.asking.truth;
  return under;
}

std::unique_ptr<at::ObserverContext> start_host_call(const Operator& op,
                                                     c10::ArrayRef<const c10::IValue> arguments) {
  HostCall call = start_on_host(op, arguments, thread.asking);
  if (!call.rests) return nullptr;
  thread.asking.size += call.decides;
  auto under = std::make_unique<Under>();
  under->on_host = std::move(call);
  return under;
}

void start_size(Under& under) {
  under.reader = true;
  under.size = find_size(under.call);
  under.told_before = size_asked_for();
  tell_size(&under.size);
  const SizeOf size_of = under.call.size_of;
  under.quiet = size_of == SizeOf::boxes || size_of == SizeOf::verdict ||
                size_of == SizeOf::coalesce ||
                size_of == under.call.node->op->size_of_rows;  // calls others of these
  thread.inside_reader += under.quiet;
}

ValuePtr value_at(const at::Tensor& tensor) {
  return has_storage(tensor) ? Storages::all().find(base_of(tensor), bytes_of(tensor)) : nullptr;
}

// Of a wrapper, too, that is a tensor itself: one that Python made of another with its storage.
ValuePtr value_under(const at::Tensor& tensor) {
  if (!is_wrapper(tensor)) return value_at(tensor);
  try {
    return tensor.has_storage() && base_of(tensor) != 0
               ? Storages::all().find(base_of(tensor), bytes_of(tensor))
               : nullptr;
  } catch (const std::exception&) {  // a storage that is only said to be there
    return nullptr;
  }
}

std::unique_ptr<at::ObserverContext> start_resize(const at::Tensor& tensor) {
  const std::lock_guard lock(Storages::all().mutex());
  auto under = std::make_unique<Under>();
  under->resized = tensor;
  under->resized_value = has_storage(tensor) ? value_at(tensor) : nullptr;
  under->resized_base = under->resized_value ? base_of(tensor) : 0;
  return under;
}

void end_resize(const Under& under) {
  const at::Tensor& tensor = under.resized;
  if (!under.resized_value || !has_storage(tensor)) return;
  const std::lock_guard lock(Storages::all().mutex());
  const auto bytes = bytes_of(tensor);
  if (base_of(tensor) == under.resized_base || bytes > largest_copied(tensor.scalar_type())) return;
  Patch patch;
  patch.source = under.resized_value;
  patch.bytes = std::min(bytes, under.resized_value->bytes);
  put_patch(base_of(tensor), bytes, std::move(patch));
}

// What it moves, the emulated NCCL says.
std::unique_ptr<at::ObserverContext> start_collective(c10::ArrayRef<const c10::IValue> arguments) {
  auto under = std::make_unique<Under>();
  under->collective = true;
  begin_collective(arguments);
  return under;
}

// Before the lock is taken: an operator whose size is computed at once must not hold it and wait.
void wait_for_values(c10::ArrayRef<const c10::IValue> arguments) {
  for (const c10::IValue& argument : arguments)
    for_each_tensor(argument, [](const at::Tensor& tensor) {
      ValuePtr value;
      {
        const std::lock_guard lock(Storages::all().mutex());
        if (tensor.defined() && tensor.is_cuda()) value = value_at(tensor);
      }
      if (value) settle(value);
    });
}

// The operators that a composite calls are recorded. Where none of them wrote, its kernel did it
// past the dispatcher.
std::unique_ptr<at::ObserverContext> start_composite_writer(
    const Operator& op, c10::ArrayRef<const c10::IValue> arguments) {
  auto under = std::make_unique<Under>();
  const std::lock_guard lock(Storages::all().mutex());
  for (std::size_t i = 0; i < arguments.size() && i < op.writes.size(); ++i) {
    if (!op.writes[i]) continue;
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      if (auto value = value_under(tensor)) under->untouched.emplace_back(tensor, std::move(value));
    });
  }
  return under;
}

// Into a graph of CUDA's: it runs when the graph is replayed, and with what lies there then.
bool is_captured() {
  return peakbench_emulator_captures() != 0 &&
         c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None;
}

// What was known before the capture stays so until then. With the lock.
bool is_kept_until_replay(const Call& call) {
  return std::ranges::any_of(call.targets, [](const at::Tensor& target) {
    const auto value = value_at(target);
    return value && !value->substituted;
  });
}

// Of what lies below an operator that is recorded as a whole, nothing is known for certain.
bool is_checked(const Operator& op) {
  return op.check && computes && !thread.inside_writer && !thread.inside_reader &&
         watches_allocator();
}

std::unique_ptr<at::ObserverContext> started(const at::RecordFunction& function) {
  const Operator& op = operator_of(function);
  const auto arguments = function.inputs();
  if (is_checked(op)) check_as_a_kernel(op, arguments);
  if (op.sets_storage) thread.shows_storage = arguments[0].toTensor().getIntrusivePtr();
  if (op.asks_truth && computes) return start_truth();
  if (op.shows && computes && !uses_card(arguments))
    return start_on_host(op, arguments, thread.asking), nullptr;
  if (op.ignored && !op.reads_scalar && !op.resizes && !op.is_collective) return nullptr;
  if (!uses_card(arguments)) return computes ? start_host_call(op, arguments) : nullptr;
  if (!watches_allocator() || !computes) return nullptr;
  if (op.is_collective) return start_collective(arguments);
  if (op.resizes) return start_resize(arguments[0].toTensor());
  if (op.reads_scalar) return start_read(arguments, 0);
  if (op.is_copy && arguments[0].toTensor().is_cpu()) return start_read(arguments, 1);
  if (thread.inside_reader || (thread.inside_writer && op.mutates)) return nullptr;
  if (op.appends_sparse && are_all(at::kSparse, arguments)) return nullptr;
  const bool wrapped =
      !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::Python) && has_wrapper(arguments);
  const bool captured = is_captured();
  if (op.mutates && (wrapped || !op.direct))
    return captured ? nullptr : start_composite_writer(op, arguments);
  if (wrapped) return nullptr;
  const SizeOf size_of = size_of_call(op, arguments);
  if (size_of != SizeOf::nothing) wait_for_values(arguments);
  auto under = std::make_unique<Under>();
  const std::lock_guard lock(Storages::all().mutex());
  under->call = gather(op, arguments);
  if (op.mutates && (under->call.target_on_host || under->call.targets.empty())) return nullptr;
  if (captured && is_kept_until_replay(under->call)) return nullptr;
  if (!under->call.lost) under->call.node->substituted |= captured;
  for (const at::Tensor& target : under->call.targets)
    if (target.is_cuda() && has_storage(target)) peakbench_emulator_written(base_of(target));
  under->records = true;
  under->writer = op.mutates;
  thread.inside_writer += under->writer;
  if (size_of != SizeOf::nothing) start_size(*under);
  return under;
}

bool is_refusal(const std::exception& error) {
  return dynamic_cast<const c10::Error*>(&error) != nullptr;
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
  thread.functions.push_back(&function);
  if (stopped || Unseen::now()) return nullptr;
  try {
    return started(function);
  } catch (const std::exception& error) {  // a tensor of a kind that was not thought of: no value
    if (!is_refusal(error)) tell_of_failure(error);
    const std::lock_guard lock(Storages::all().mutex());
    for (const c10::IValue& argument : function.inputs()) for_each_tensor(argument, forget_storage);
    return nullptr;
  }
}

void give_purpose(const Operator& op, const at::Tensor& tensor) {
  if (op.purpose == Purpose::any ||
      (op.purpose == Purpose::seed && tensor.scalar_type() != at::kLong))
    return;
  const auto value = value_at(tensor);
  if (value) value->purpose = op.purpose;
  const bool unsure = !value || doubtful(*value);
  if (op.purpose == Purpose::finite_check && unsure && has_storage(tensor) && tensor.is_cuda())
    put_uniform(tensor, op.name == "aten::isfinite" ? 1 : 0);
}

void ended(const at::RecordFunction& function, Under& under) {
  if (!under.records && under.untouched.empty()) return;
  const std::lock_guard lock(Storages::all().mutex());
  for (const auto& [tensor, value] : under.untouched)
    if (value_under(tensor) == value) forget_storage(tensor);
  if (!under.records) return;
  if (under.reader && !under.call.node->sparse.empty()) {
    record_results(under.call, function.outputs());
    return put_indices(under.size, function.outputs());
  }
  if (under.reader) return put_results(under.call, under.size, function.outputs());
  if (under.writer) {
    record_targets(under.call);
    for (const at::Tensor& target : under.call.targets) give_purpose(*under.call.node->op, target);
    return;
  }
  record_results(under.call, function.outputs());
  for (const c10::IValue& result : function.outputs())
    for_each_tensor(result,
                    [&](const at::Tensor& tensor) { give_purpose(*under.call.node->op, tensor); });
}

void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
  thread.functions.pop_back();
  if (!context) return;
  auto& under = static_cast<Under&>(*context);
  thread.inside_writer -= under.writer;
  thread.inside_reader -= under.quiet;
  if (under.collective) end_collective();
  thread.asking.truth -= under.truth;
  thread.asking.size -= under.on_host.decides;
  if (under.reader) tell_size(under.told_before);
  try {
    if (under.scalar) return end_read(under);
    if (under.on_host.rests)
      return end_on_host(operator_of(function), under.on_host, function.outputs());
    if (under.resized.defined()) return end_resize(under);
    ended(function, under);
  } catch (const std::exception& error) {
    if (!is_refusal(error)) tell_of_failure(error);
    // What it wrote is not known.
    const std::lock_guard lock(Storages::all().mutex());
    for (const at::Tensor& target : under.call.targets) forget_storage(target);
  }
}

ReadKind kind_of(at::ScalarType dtype) {
  if (dtype == at::ScalarType::Undefined) return ReadKind::bytes;
  if (dtype == at::kBool || thread.asking.truth > 0) return ReadKind::boolean;
  return c10::isIntegralType(dtype, false) ? ReadKind::integer : ReadKind::floating;
}

template <typename Number>
void write(void* to, std::int64_t value) {
  const auto number = static_cast<Number>(value);
  std::memcpy(to, &number, sizeof number);
}

// What thrust's searches read of a card: whether it is found, and where.
struct FirstPlace {
  std::int64_t is_found = 1, place = 0;
};

int tell(const Size& size, void* to, std::uint64_t bytes, ReadKind& kind) {
  kind = ReadKind::size;
  if (bytes == sizeof(std::int64_t)) {
    write<std::int64_t>(to, size.count);
  } else if (bytes == sizeof(std::int32_t)) {
    write<std::int32_t>(to, size.count);
  } else if (bytes == 1) {
    write<std::uint8_t>(to, size.count);
    kind = ReadKind::boolean;
    if (size.substituted && size.purpose == Purpose::any)
      choose_outcome(nullptr, 0, {to, bytes, at::kBool, kind});
  } else if (size.finds_first && bytes == sizeof(FirstPlace)) {
    constexpr FirstPlace kFirst{};
    std::memcpy(to, &kFirst, sizeof kFirst);
  } else {
    return kPeakbenchUnknown;
  }
  if (size.purpose == Purpose::finite_check) kind = ReadKind::finite;
  size.choices.tell(!size.substituted);
  return size.substituted ? kPeakbenchSubstitute : kPeakbenchKnown;
}

ValuePtr value_to_read(std::uint64_t from, std::uint64_t bytes, std::size_t& offset) {
  const std::lock_guard lock(Storages::all().mutex());
  return Storages::all().find_bytes(from, bytes, offset);
}

// Numbers that have no value are plausible, as those that have one; what the host put there before
// stays.
int read_without_value(void* to, std::uint64_t bytes, PeakbenchStanding held, ReadKind kind) {
  const auto dtype = thread.reading;
  thread.read_known &= held == kPeakbenchKnown;
  if (held != kPeakbenchUnknown || dtype == at::ScalarType::Undefined ||
      c10::isIntegralType(dtype, true) || thread.reading_storage || bytes > kLargest)
    return kPeakbenchNotMine;
  try {
    const std::lock_guard lock(Storages::all().mutex());
    const Unseen unseen;
    std::memcpy(to, made_up(bytes, {dtype, {}, 1}).data_ptr(), bytes);
  } catch (const std::exception&) {  // a kind of number that the CPU draws none of
    return kPeakbenchNotMine;
  }
  choose_outcome(nullptr, 0, {to, bytes, dtype, kind});
  return kPeakbenchSubstitute;
}

int answer_read(std::uint64_t from, void* to, std::uint64_t bytes, PeakbenchStanding held,
                ReadKind& kind) {
  thread.read_to = to;
  if (const Size* size = size_asked_for()) return tell(*size, to, bytes, kind);
  kind = thread.reading_storage            ? ReadKind::storage
         : thread.copying && !has_python() ? ReadKind::copy
                                           : kind_of(thread.reading);
  std::size_t offset = 0;
  const auto value = value_to_read(from, bytes, offset);
  if (!value) return read_without_value(to, bytes, held, kind);
  const int standing = read_bytes(value, offset, bytes, to);
  if (standing == kPeakbenchSubstitute && value->purpose == Purpose::any)
    choose_outcome(value, offset, {to, bytes, thread.reading, kind});
  const std::lock_guard lock(Storages::all().mutex());
  thread.read_known &= standing == kPeakbenchKnown;
  thread.read_purpose = value->purpose;
  if (standing == kPeakbenchSubstitute && value->purpose != Purpose::any)
    kind = value->purpose == Purpose::seed ? ReadKind::seed : ReadKind::finite;
  return standing;
}

int on_read(std::uint64_t from, void* to, std::uint64_t bytes, PeakbenchStanding held, int* kind) {
  auto found = ReadKind::bytes;
  const int standing = answer_read(from, to, bytes, held, found);
  *kind = static_cast<int>(found);
  return standing;
}

// The work of operators is known from them: PyTorch's own kernels run in one, and what another
// library brings along may run in one of its own. What is called in PyTorch's operators and is no
// part of it (by a dispatch mode), and in functions that are no operators (of autograd, of
// torch.compile, hooks), is known from nobody.
bool is_an_operators(PeakbenchWork work, const void* caller) {
  if (thread.functions.empty()) return false;
  if (work == kPeakbenchLibraryCall || is_pytorchs(caller)) return true;
  if (work == kPeakbenchLoadedAtRunTime) return false;
  const Operator& innermost = operator_of(*thread.functions.back());
  return innermost.handle && !innermost.name.starts_with("aten::");
}

void on_work(const std::uint64_t* words, int count, PeakbenchWork work, const void* caller) {
  if (Unseen::now() || is_an_operators(work, caller)) return;
  if (count < 0) return count_foreign_work();
  const std::lock_guard lock(Storages::all().mutex());
  for (int i = 0; i < count; ++i) Storages::all().may_be_written(words[i]);
}

__attribute__((constructor)) void listen() {
  const char* compute = std::getenv(emulator::kComputeVariable);
  computes = compute && *compute == '1';
  if (computes) {
    peakbench_emulator_listen(on_read, on_work);
    answer_exchange();
  }
  at::addGlobalCallback(at::RecordFunctionCallback(on_start, on_end)
                            .needsInputs(true)
                            .needsOutputs(computes)
                            .scopes({at::RecordScope::FUNCTION}));
}

}  // namespace
}  // namespace peakbench::values

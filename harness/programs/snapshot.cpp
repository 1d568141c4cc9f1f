#include "programs/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/errors.h"
#include "base/printable.h"
#include "programs/pickle.h"

namespace peakbench::programs {
namespace {

// c10/core/AllocatorConfig.h
constexpr std::int64_t kMinBlockSize = 512;
constexpr std::int64_t kSmallSize = 1 << 20;    // what is left of a large block is not split below
constexpr std::int64_t kSmallBuffer = 2 << 20;  // a segment of small blocks

}  // namespace

std::int64_t rounded_block(std::int64_t requested) {
  return std::max(kMinBlockSize, (requested + kMinBlockSize - 1) / kMinBlockSize * kMinBlockSize);
}

// AcceleratorAllocatorConfig::roundup_power2_divisions() and roundup_power2_next_division().
std::int64_t SnapshotBlocks::rounded(std::int64_t requested) const {
  if (divisions_.empty() || requested < kMinBlockSize) return rounded_block(requested);
  const auto size = static_cast<std::uint64_t>(requested);
  constexpr int kFirst = 20;  // 1 MiB
  const auto interval = std::clamp<int>(static_cast<int>(std::bit_width(size)) - 1 - kFirst, 0,
                                        static_cast<int>(divisions_.size()) - 1);
  const auto divisions = static_cast<std::uint64_t>(divisions_[static_cast<std::size_t>(interval)]);
  if (divisions <= 1 || size <= kMinBlockSize * divisions) return rounded_block(requested);
  const auto step = std::bit_floor(size) >> (std::bit_width(divisions) - 1);
  return static_cast<std::int64_t>((size + step - 1) / step * step);
}

std::int64_t SnapshotBlocks::allocate(std::uint64_t address, std::int64_t requested) {
  const auto rounded = this->rounded(requested);
  auto bytes = rounded;
  if (const auto* segment = segments.at(address)) {
    auto end = segment->address + static_cast<std::uint64_t>(segment->bytes);
    if (const auto next = blocks_.upper_bound(address); next != blocks_.end())
      end = std::min(end, next->first);
    const auto rest = static_cast<std::int64_t>(end - address) - rounded;
    const bool split =
        segment->expandable || segment->bytes == kSmallBuffer
            ? rest >= kMinBlockSize
            : rest > kSmallSize && (most_split_bytes_ < 0 || rounded < most_split_bytes_);
    if (rest > 0 && !split) bytes += rest;
  }
  blocks_[address] = bytes;
  return bytes;
}

namespace {

using Value = PickleValue;
using Kind = PickleKind;
using trace::EventKind;

constexpr std::size_t kMostDevices = 64;
constexpr std::int64_t kLargestBlock = std::int64_t{1} << 50U;  // more than any card has

std::optional<EventKind> kind_of(const std::string& word) {
  static constexpr std::array<std::pair<std::string_view, EventKind>, 8> kWords{{
      {"alloc", EventKind::kAlloc},
      {"free_requested", EventKind::kFreeRequested},
      {"free_completed", EventKind::kFree},
      {"segment_alloc", EventKind::kSegmentAlloc},
      {"segment_free", EventKind::kSegmentFree},
      {"segment_map", EventKind::kSegmentMap},
      {"segment_unmap", EventKind::kSegmentUnmap},
      {"oom", EventKind::kOutOfMemory},
  }};
  for (const auto& [known, kind] : kWords)
    if (word == known) return kind;
  return std::nullopt;
}

// With `stacks="all"`, PyTorch records those of C++ too, whose files are sources, object files or
// unknown.
bool is_of_python(std::string_view file) {
  return file.ends_with(".py") || file.ends_with(".pyc") || file.ends_with(".pyw") ||
         file.starts_with("<");
}

// A file's texts, each once.
class Words {
 public:
  explicit Words(std::vector<std::string>& found) : found_(found) {}

  std::int32_t index(const std::string& text) {
    const auto [at, fresh] = known_.try_emplace(text, static_cast<std::int32_t>(found_.size()));
    if (fresh) found_.push_back(bounded(is_utf8(text) ? text : escaped_bytes(text)));
    return at->second;
  }

 private:
  std::vector<std::string>& found_;
  std::unordered_map<std::string, std::int32_t> known_;
};

NativeWork work_of(std::string_view function) {
  const auto has = [&](const char* part) { return function.find(part) != std::string_view::npos; };
  if (has("torch::autograd::Engine::")) return NativeWork::kBackward;
  // aten/src/ATen/cuda/CublasHandlePool.cpp
  if (has("at::cuda::setWorkspaceForHandle(") || has("at::cuda::getCUDABlasLtWorkspace("))
    return NativeWork::kWorkspace;
  return NativeWork::kOther;
}

struct Stack {
  std::int32_t innermost = trace::kNone;
  NativeWork work = NativeWork::kOther;
};

// Stacks as the trace has them: a tree, each frame, file and function once.
class Stacks {
 public:
  explicit Stacks(Snapshot& snapshot)
      : snapshot_(snapshot), files_(snapshot.files), functions_(snapshot.functions) {}

  // Of a list of frames, the innermost first.
  Stack stack(const Pickle& pickle, Value frames) {
    if (frames.kind != Kind::kList) return {};
    const auto known = stacks_.find(frames.number);
    if (known != stacks_.end()) return known->second;
    Stack stack;
    const auto list = pickle.items(frames);
    for (auto at = list.rbegin(); at != list.rend(); ++at)
      if (at->kind == Kind::kDict) follow(pickle, *at, stack);
    stacks_.emplace(frames.number, stack);
    return stack;
  }

 private:
  struct Lone {
    std::optional<trace::StackFrame> frame;  // without its caller; nullopt: left out
    NativeWork work = NativeWork::kOther;
  };

  void follow(const Pickle& pickle, Value dict, Stack& stack) {
    auto [known, fresh] = lone_.try_emplace(dict.number);
    if (fresh) known->second = lone(pickle, dict);
    stack.work = std::max(stack.work, known->second.work);
    if (!known->second.frame) return;
    auto one = *known->second.frame;
    one.parent = stack.innermost;
    const auto [at, is_new] =
        frames_.try_emplace({one.parent, one.file, one.function, one.line},
                            static_cast<std::int32_t>(snapshot_.frames.size()));
    if (is_new) snapshot_.frames.push_back(one);
    stack.innermost = at->second;
  }

  Lone lone(const Pickle& pickle, Value dict) {
    constexpr std::int64_t kMostLines = 1 << 30;
    const auto& file = pickle.text(pickle.find(dict, "filename"));
    const auto& function = pickle.text(pickle.find(dict, "name"));
    if (!is_of_python(file) && !is_script(file, function)) return {{}, work_of(function)};
    const auto line = pickle.find(dict, "line");
    trace::StackFrame one;
    one.file = files_.index(file);
    one.function = functions_.index(function);
    if (line.kind == Kind::kInteger)
      one.line = static_cast<std::int32_t>(std::clamp<std::int64_t>(line.number, 0, kMostLines));
    return {one, NativeWork::kOther};
  }

  // One of another name: its outermost frame, which comes first, tells.
  bool is_script(const std::string& file, const std::string& function) {
    if (function == "<module>") scripts_.insert(file);
    return scripts_.contains(file);
  }

  Snapshot& snapshot_;
  Words files_, functions_;
  std::unordered_set<std::string> scripts_;
  std::unordered_map<std::int64_t, Lone> lone_;  // by the dict's place in the pickle
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>, std::int32_t>
      frames_;
  std::unordered_map<std::int64_t, Stack> stacks_;  // by the list's place in the pickle
};

class SnapshotReader {
 public:
  explicit SnapshotReader(const std::string& path)
      : path_(path), stacks_(snapshot_), words_(snapshot_.words) {}

  Snapshot read() {
    const auto pickle = Pickle::read(
        path_, [this](const Pickle& so_far, Value dict) { return condense(so_far, dict); });
    const auto top = pickle.top();
    // torch.cuda.memory_snapshot() returns the list of segments alone.
    const bool is_list =
        top.kind == Kind::kList && std::ranges::all_of(pickle.items(top), [&](const Value& one) {
          return pickle.find(one, "blocks").kind == Kind::kList;
        });
    const auto segments = is_list ? top : pickle.find(top, "segments");
    const auto traces = pickle.find(top, "device_traces");
    if (segments.kind != Kind::kList || (!is_list && traces.kind != Kind::kList))
      fail(
          "is a pickle, and no memory snapshot of PyTorch: expected a dict with the lists "
          "`segments` and `device_traces`");
    for (const auto& one : pickle.items(segments)) take_segment(pickle, one);
    for (const auto& one : pickle.items(traces)) take_history(pickle, one);
    for (const auto& one : pickle.items(pickle.find(top, "external_annotations")))
      take_annotation(pickle, one);
    take_settings(pickle, pickle.find(top, "allocator_settings"));
    return std::move(snapshot_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ConfigError(fmt::format("{}: {}", path_, what));
  }

  void take_annotation(const Pickle& pickle, Value dict) {
    const auto& name = pickle.text(pickle.find(dict, "name"));
    const auto& stage = pickle.text(pickle.find(dict, "stage"));
    if (stage != "START" && stage != "END") return;
    take_once(dict);
    snapshot_.annotations.push_back(
        {words_.index(name), stage == "END", integer_or(pickle, dict, "time_us", 0)});
  }

  void take_settings(const Pickle& pickle, Value settings) {
    if (const auto most = pickle.find(settings, "max_split_size"); most.kind == Kind::kInteger)
      snapshot_.most_split_bytes = most.number;
    const auto divisions = pickle.items(pickle.find(settings, "roundup_power2_divisions"));
    constexpr std::size_t kIntervals = 16;  // of sizes from 1 MiB to 32 GiB, in their order
    for (std::size_t i = 1; i < divisions.size() && i < 2 * kIntervals; i += 2) {
      const auto count = divisions[i].kind == Kind::kInteger ? divisions[i].number : 0;
      if (count < 0 || count > kLargestBlock) fail("has an invalid roundup_power2_divisions");
      snapshot_.divisions.push_back(count);
    }
  }

  // In a snapshot each list and dict of them stands once. One that is referred to many times would
  // make a small file endless.
  void take_once(Value container) {
    if (container.kind != Kind::kList && container.kind != Kind::kDict) return;
    if (!taken_.insert(container.number).second)
      fail(
          "has one and the same segment, block, history or annotation several times: it is "
          "damaged");
  }

  // Entries of the histories are most of the file, and are records as soon as they are read.
  std::optional<std::int64_t> condense(const Pickle& pickle, Value dict) {
    constexpr std::size_t kMostFields = 100;
    if (pickle.items(dict).size() > 2 * kMostFields) return std::nullopt;
    const auto action = pickle.find(dict, "action");
    if (action.kind != Kind::kText) return std::nullopt;
    SnapshotEntry entry;
    const auto known = kind_of(pickle.text(action));
    if (!known) return kOther;  // `snapshot`: where one was made
    entry.kind = *known;
    entry.bytes = bytes(pickle, dict, "size");
    entry.address =
        address(pickle, dict, *known == EventKind::kOutOfMemory ? "device_free" : "addr");
    if (*known != EventKind::kOutOfMemory) check_end(entry.address, entry.bytes);
    entry.stream = integer_or(pickle, dict, "stream", 0);
    entry.time_us = integer_or(pickle, dict, "time_us", 0);
    const auto stack = stacks_.stack(pickle, pickle.find(dict, "frames"));
    entry.stack = stack.innermost;
    entry.work = stack.work;
    if (const auto& label = pickle.text(pickle.find(dict, "user_metadata")); !label.empty())
      entry.label = words_.index(label);
    entries_.push_back(entry);
    return static_cast<std::int64_t>(entries_.size()) - 1;
  }

  void take_history(const Pickle& pickle, Value list) {
    if (list.kind != Kind::kList) fail("has a history in `device_traces` that is no list");
    if (snapshot_.histories.size() == kMostDevices)
      fail(fmt::format("has histories of more than {} devices", kMostDevices));
    auto& history = snapshot_.histories.emplace_back();
    if (!pickle.items(list).empty()) take_once(list);
    for (const auto& one : pickle.items(list)) {
      if (one.kind != Kind::kRecord) fail("has an entry in `device_traces` without an `action`");
      if (one.number != kOther) history.push_back(entries_[static_cast<std::size_t>(one.number)]);
    }
  }

  void take_segment(const Pickle& pickle, Value dict) {
    SnapshotSegment segment;
    take_once(dict);
    segment.device = integer_or(pickle, dict, "device", 0);
    if (segment.device < 0 || segment.device >= static_cast<std::int64_t>(kMostDevices))
      fail(fmt::format("has a segment on device {}", segment.device));
    segment.address = address(pickle, dict, "address");
    segment.bytes = bytes(pickle, dict, "total_size");
    check_end(segment.address, segment.bytes);
    const auto expandable = pickle.find(dict, "is_expandable");
    segment.expandable = expandable.kind == Kind::kBool && expandable.number != 0;
    auto at = segment.address;
    for (const auto& one : pickle.items(pickle.find(dict, "blocks")))
      take_block(pickle, one, segment, at);
    snapshot_.segments.push_back(std::move(segment));
  }

  // Before PyTorch 2.1 a block's address is not said: they lie one behind the other.
  void take_block(const Pickle& pickle, Value dict, SnapshotSegment& segment, std::uint64_t& at) {
    SnapshotBlock block;
    take_once(dict);
    block.bytes = bytes(pickle, dict, "size");
    if (pickle.find(dict, "address").kind == Kind::kInteger) at = address(pickle, dict, "address");
    check_end(at, block.bytes);
    block.address = at;
    at += static_cast<std::uint64_t>(block.bytes);
    const auto& state = pickle.text(pickle.find(dict, "state"));
    if (state != "active_allocated" && !state.starts_with("active_pending_free") &&
        state != "active_awaiting_free")
      return;
    if (pickle.find(dict, "requested_size").kind == Kind::kInteger)
      block.requested_bytes = std::min(bytes(pickle, dict, "requested_size"), block.bytes);
    else
      block.requested_bytes = block.bytes;
    block.stack = stacks_.stack(pickle, pickle.find(dict, "frames")).innermost;
    segment.blocks.push_back(block);
  }

  void check_end(std::uint64_t address, std::int64_t bytes) const {
    if (address + static_cast<std::uint64_t>(bytes) < address)
      fail(fmt::format("has {} bytes at {:#x}, beyond the last address: it is damaged", bytes,
                       address));
  }

  static std::int64_t integer_or(const Pickle& pickle, Value dict, std::string_view key,
                                 std::int64_t otherwise) {
    const auto value = pickle.find(dict, key);
    return value.kind == Kind::kInteger ? value.number : otherwise;
  }

  std::uint64_t address(const Pickle& pickle, Value dict, std::string_view key) const {
    return static_cast<std::uint64_t>(integer_or(pickle, dict, key, 0));
  }

  std::int64_t bytes(const Pickle& pickle, Value dict, std::string_view key) const {
    const auto value = pickle.find(dict, key);
    if (value.kind != Kind::kInteger) fail(fmt::format("has an entry without `{}`", key));
    if (value.number < 0 || value.number > kLargestBlock)
      fail(fmt::format("has an entry of {} bytes (`{}`), which no device has: it is damaged",
                       value.number, key));
    return value.number;
  }

  static constexpr std::int64_t kOther = -1;

  std::string path_;
  Snapshot snapshot_;
  Stacks stacks_;
  Words words_;
  std::vector<SnapshotEntry> entries_;
  std::unordered_set<std::int64_t> taken_;  // places of containers in the pickle
};

}  // namespace

Snapshot read_snapshot(const std::string& path) { return SnapshotReader(path).read(); }

}  // namespace peakbench::programs

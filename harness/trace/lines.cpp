#include "trace/lines.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace peakbench::trace {
namespace {

constexpr std::string_view kNumberedCell = "<ipython-input-";

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// lib/python3.12/contextlib.py
bool is_of_python(std::string_view file) {
  const auto at = file.find("/lib/python3");
  return at != std::string_view::npos;
}

// Of every frame which is the program's own line, found once: frames come after their callers, and
// an inner frame of the program's wins.
class OwnFrames {
 public:
  explicit OwnFrames(const Trace& trace) : trace_(trace) {
    for (const auto& file : trace.files) {
      library_.push_back(is_library_file(file));
      pytorch_.push_back(is_pytorch_file(file));
    }
    own_.reserve(trace.frames.size());
    other_.reserve(trace.frames.size());
    for (std::size_t i = 0; i < trace.frames.size(); ++i) add(static_cast<std::int32_t>(i));
  }

  std::int32_t of(std::int32_t stack, LineOf whose) const {
    if (stack == kNone) return kNone;
    const auto at = static_cast<std::size_t>(stack);
    if (whose == LineOf::kProgram && own_[at] != kNone) return own_[at];
    return other_[at] != kNone ? other_[at] : stack;
  }

 private:
  void add(std::int32_t number) {
    const auto& frame = trace_.frames[static_cast<std::size_t>(number)];
    const auto above = [&](const std::vector<std::int32_t>& list) {
      return frame.parent == kNone ? kNone : list[static_cast<std::size_t>(frame.parent)];
    };
    const auto file = static_cast<std::size_t>(frame.file);
    const bool known = frame.file != kNone;
    own_.push_back(known && !library_[file] ? number : above(own_));
    other_.push_back(known && !pytorch_[file] ? number : above(other_));
  }

  const Trace& trace_;
  std::vector<bool> library_, pytorch_;
  std::vector<std::int32_t> own_, other_;  // by frame: the innermost such frame at or above it
};

SourceLine line_of(const Trace& trace, std::int32_t frame) {
  if (frame == kNone) return {};
  const auto& at = trace.frames[static_cast<std::size_t>(frame)];
  return {word_at(trace.files, at.file), word_at(trace.functions, at.function), at.line};
}

}  // namespace

bool is_cell(std::string_view file) {
  return has(file, "/ipykernel_") || cell_number(file).has_value();
}

std::optional<int> cell_number(std::string_view file) {
  if (!file.starts_with(kNumberedCell)) return std::nullopt;
  int number = 0;
  const auto* begin = file.data() + kNumberedCell.size();
  const auto read = std::from_chars(begin, file.data() + file.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

bool is_library_file(const std::string& file) {
  if (is_cell(file)) return false;
  return file.empty() || file.front() == '<' || has(file, "/site-packages/") ||
         has(file, "/dist-packages/") || is_of_python(file) || has(file, "/lib/peakbench/") ||
         has(file, "/python/peakbench/") ||
         has(file, "/torchinductor_");  // what PyTorch's compiler wrote
}

std::string library_file(const std::string& file) {
  if (!is_library_file(file)) return file;
  // A folder, and with what the part behind it begins.
  const std::pair<std::string, std::string> folders[] = {{"/site-packages/", ""},
                                                         {"/dist-packages/", ""},
                                                         {"/python/", "peakbench/"},
                                                         {"/lib/", "python3"}};
  for (const auto& [folder, begins] : folders)
    if (const auto at = file.rfind(folder + begins); at != std::string::npos)
      return file.substr(at + folder.size());
  return file;
}

bool is_pytorch_file(std::string_view file) {
  return has(file, "/lib/peakbench/") || has(file, "-packages/torch/") || has(file, "/torch/_");
}

SourceLine own_line(const Trace& trace, std::int32_t stack) {
  return line_of(trace, OwnFrames(trace).of(stack, LineOf::kProgram));
}

SourceLine calling_line(const Trace& trace, std::int32_t stack) {
  const auto frame = [&](std::int32_t at) { return trace.frames[static_cast<std::size_t>(at)]; };
  const auto file = [&](std::int32_t at) { return word_at(trace.files, frame(at).file); };
  const auto own_from = [&](std::int32_t at) {
    while (at != kNone && is_library_file(file(at))) at = frame(at).parent;
    return at;
  };
  const auto made = own_from(stack);
  if (made == kNone) return {};
  auto module = kNone;  // the outermost call of one
  for (auto at = stack; at != kNone; at = frame(at).parent)
    if (file(at).ends_with("torch/nn/modules/module.py")) module = at;
  const auto caller = own_from(module != kNone ? module : frame(made).parent);
  return caller == made ? SourceLine{} : line_of(trace, caller);
}

OwnLines::OwnLines(const Trace& trace, LineOf whose) : lines_(1) {
  const OwnFrames own(trace);
  std::map<std::tuple<std::string, std::int32_t, std::string>, std::size_t> numbers;
  line_of_.reserve(trace.frames.size());
  for (std::size_t i = 0; i < trace.frames.size(); ++i) {
    auto line = line_of(trace, own.of(static_cast<std::int32_t>(i), whose));
    const auto [at, fresh] =
        numbers.try_emplace({line.file, line.line, line.function}, lines_.size());
    if (fresh) lines_.push_back(std::move(line));
    line_of_.push_back(at->second);
  }
}

std::vector<LineShare> lines_at(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                                std::uint64_t event, int space, LineOf whose) {
  space = space_or_own(trace, space);
  const OwnLines own(trace, whose);
  std::vector<LineShare> lines(own.size());
  std::int64_t total = 0;
  for (const auto& lifetime : lifetimes) {
    if (lifetime.first > event) break;
    const auto& alloc = trace.events[lifetime.first];
    if (lifetime.last <= event || alloc.space != space) continue;
    auto& share = lines[own.of(alloc.stack)];
    share.bytes += alloc.block_bytes;
    ++share.allocations;
    share.by_category[static_cast<std::size_t>(lifetime.category)] += alloc.requested_bytes;
    share.by_category[static_cast<std::size_t>(Category::kAllocatorSlack)] +=
        alloc.block_bytes - alloc.requested_bytes;
    total += alloc.block_bytes;
  }
  std::vector<LineShare> found;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].allocations == 0) continue;
    lines[i].line = own.at(i);
    lines[i].share =
        total > 0 ? static_cast<double>(lines[i].bytes) / static_cast<double>(total) : 0;
    found.push_back(std::move(lines[i]));
  }
  std::stable_sort(found.begin(), found.end(), [](const LineShare& a, const LineShare& b) {
    return std::tie(b.bytes, a.line.file, a.line.line, a.line.function) <
           std::tie(a.bytes, b.line.file, b.line.line, b.line.function);
  });
  return found;
}

}  // namespace peakbench::trace

#include "programs/pickle.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "programs/pickle_source.h"

namespace peakbench::programs {
namespace {

// Of what a file may make of a byte; a snapshot has a list in a dict in a list in a list in a dict.
constexpr std::size_t kMostOpen = 1000;
constexpr std::size_t kMostOnStack = 50'000'000;
constexpr std::size_t kMostContainers = 400'000'000;

enum Opcode : std::uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinUnicode = 'X',
  kShortBinBytes = 'C',
  kBinBytes = 'B',
  kAppend = 'a',
  kAppends = 'e',
  kDict = 'd',
  kList = 'l',
  kTuple = 't',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kSetItems = 'u',
  kEmptyDict = '}',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8A,
  kLong4 = 0x8B,
  kShortBinUnicode = 0x8C,
  kBinUnicode8 = 0x8D,
  kBinBytes8 = 0x8E,
  kMemoize = 0x94,
  kFrame = 0x95,
  // What makes anything but plain data.
  kGlobal = 'c',
  kInst = 'i',
  kStackGlobal = 0x93,
};

// The others of these: objects, calls, persistent ids and extensions.
constexpr std::string_view kCalls = "oRbPQ\x81\x82\x83\x84\x92";

}  // namespace

// Python's unpickler without what calls.
class PickleMachine {
 public:
  PickleMachine(Pickle& pickle, PickleSource& source, const Pickle::Condense& condense)
      : pickle_(pickle), source_(source), condense_(condense) {}

  void run() {
    begin();
    while (step(source_.byte())) {
    }
    pickle_.top_ = pop();
  }

 private:
  using Value = PickleValue;
  using Kind = PickleKind;

  static const char* what_begins_with(std::uint8_t first) {
    if (first == 0x1f) return "is compressed by gzip: unpack it with gunzip first";
    if (first == '{' || first == '[')
      return "is JSON, as torch.profiler writes traces and memory timelines, which lack blocks and "
             "segments";
    return "is no pickle of protocol 2 to 5";
  }

  void begin() {
    constexpr int kOldest = 2, kNewest = 5;
    if (source_.is_empty()) source_.fail("is empty; expected a memory snapshot of PyTorch");
    if (const auto first = source_.byte(); first != kProto)
      source_.fail(fmt::format("{}; expected what torch.cuda.memory._dump_snapshot writes",
                               what_begins_with(first)));
    const auto protocol = source_.byte();
    if (protocol < kOldest || protocol > kNewest)
      source_.fail(fmt::format("is a pickle of protocol {}; expected 2 to 5", protocol));
  }

  // False at the end.
  bool step(std::uint8_t opcode) {
    if (opcode == kStop) return false;
    if (!number(opcode) && !text(opcode) && !container(opcode) && !memo(opcode)) refuse(opcode);
    return true;
  }

  bool number(std::uint8_t opcode) {
    switch (opcode) {
      case kNone:
        return push({});
      case kNewTrue:
      case kNewFalse:
        return push({Kind::kBool, opcode == kNewTrue ? 1 : 0});
      case kBinInt:
        return integer(static_cast<std::int32_t>(source_.little_endian(4)));
      case kBinInt1:
        return integer(static_cast<std::int64_t>(source_.little_endian(1)));
      case kBinInt2:
        return integer(static_cast<std::int64_t>(source_.little_endian(2)));
      case kLong1:
        return whole(source_.little_endian(1));
      case kLong4:
        return whole(source_.little_endian(4));
      case kBinFloat:
        return real();
      default:
        return false;
    }
  }

  bool integer(std::int64_t value) { return push({Kind::kInteger, value}); }

  // Addresses have 64 bits without a sign, and then nine bytes.
  bool whole(std::uint64_t count) {
    constexpr std::uint64_t kMost = 9;
    if (count > kMost)
      source_.fail(
          fmt::format("has a number of {} bytes at byte {}, which no "
                      "snapshot has; it is damaged or none",
                      count, source_.position()));
    std::uint64_t value = 0;
    std::uint8_t last = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      last = source_.byte();
      if (i < 8) value |= static_cast<std::uint64_t>(last) << (8U * i);
    }
    const bool negative = count > 0 && (last & 0x80U) != 0;
    if (negative && count < 8) value |= ~std::uint64_t{0} << (8U * count);
    if (count == kMost && last != 0) damaged();
    return integer(static_cast<std::int64_t>(value));
  }

  bool real() {
    std::uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8U | source_.byte();
    return push({Kind::kReal, static_cast<std::int64_t>(bits)});
  }

  bool text(std::uint8_t opcode) {
    switch (opcode) {
      case kShortBinUnicode:
        return keep(Kind::kText, source_.little_endian(1));
      case kBinUnicode:
        return keep(Kind::kText, source_.little_endian(4));
      case kBinUnicode8:
        return keep(Kind::kText, source_.little_endian(8));
      case kShortBinBytes:
        return keep(Kind::kBytes, source_.little_endian(1));
      case kBinBytes:
        return keep(Kind::kBytes, source_.little_endian(4));
      case kBinBytes8:
        return keep(Kind::kBytes, source_.little_endian(8));
      default:
        return false;
    }
  }

  bool keep(Kind kind, std::uint64_t bytes) {
    pickle_.texts_.push_back(source_.bytes(bytes));
    return push({kind, static_cast<std::int64_t>(pickle_.texts_.size()) - 1});
  }

  bool container(std::uint8_t opcode) {
    switch (opcode) {
      case kMark:
        return mark();
      case kEmptyDict:
        return make(Kind::kDict, stack_.size());
      case kEmptyList:
        return make(Kind::kList, stack_.size());
      case kEmptyTuple:
        return make(Kind::kTuple, stack_.size());
      case kDict:
        return make(Kind::kDict, unmark());
      case kList:
        return make(Kind::kList, unmark());
      case kTuple:
        return make(Kind::kTuple, unmark());
      case kTuple1:
      case kTuple2:
      case kTuple3:
        return make(Kind::kTuple, last(opcode - kTuple1 + 1U));
      case kAppend:
        return add(Kind::kList, last(1));
      case kAppends:
        return add(Kind::kList, unmark());
      case kSetItem:
        return add(Kind::kDict, last(2));
      case kSetItems:
        return add(Kind::kDict, unmark());
      case kPop:
        pop();
        return true;
      case kPopMark:
        stack_.resize(unmark());
        return true;
      default:
        return false;
    }
  }

  bool mark() {
    if (marks_.size() == kMostOpen)
      source_.fail(fmt::format("has more than {} lists inside lists at byte {}; no snapshot has",
                               kMostOpen, source_.position()));
    marks_.push_back(stack_.size());
    return true;
  }

  std::size_t unmark() {
    if (marks_.empty()) damaged();
    const auto at = marks_.back();
    marks_.pop_back();
    if (at > stack_.size()) damaged();
    return at;
  }

  // Where the last of the stack begin, which belong to what was begun last.
  std::size_t last(std::size_t count) const {
    const auto bottom = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() < bottom + count) damaged();
    return stack_.size() - count;
  }

  // Of what stands on the stack from there on.
  bool make(Kind kind, std::size_t from) {
    if (pickle_.containers_.size() == kMostContainers) too_large();
    if (kind == Kind::kDict && (stack_.size() - from) % 2 != 0) damaged();
    pickle_.containers_.emplace_back(stack_.begin() + static_cast<std::ptrdiff_t>(from),
                                     stack_.end());
    stack_.resize(from);
    return push({kind, static_cast<std::int64_t>(pickle_.containers_.size()) - 1});
  }

  bool add(Kind kind, std::size_t from) {
    const auto bottom = marks_.empty() ? 0 : marks_.back();
    if (from <= bottom || stack_[from - 1].kind != kind) damaged();
    if (kind == Kind::kDict && (stack_.size() - from) % 2 != 0) damaged();
    if (kind == Kind::kList)
      for (auto i = from; i < stack_.size(); ++i) condense(stack_[i]);
    auto& items = contents(stack_[from - 1]);
    items.insert(items.end(), stack_.begin() + static_cast<std::ptrdiff_t>(from), stack_.end());
    stack_.resize(from);
    return true;
  }

  void condense(Value& value) {
    if (value.kind != Kind::kDict) return;
    const auto record = condense_(pickle_, value);
    if (!record) return;
    std::vector<Value>().swap(contents(value));
    value = {Kind::kRecord, *record};
  }

  std::vector<Value>& contents(Value value) {
    return pickle_.containers_[static_cast<std::size_t>(value.number)];
  }

  bool memo(std::uint8_t opcode) {
    switch (opcode) {
      case kProto:
        source_.byte();
        return true;
      case kFrame:
        source_.little_endian(8);  // where the writer began a new one: of no use to us
        return true;
      case kMemoize:
        return put(memo_.size());
      case kBinPut:
        return put(source_.little_endian(1));
      case kLongBinPut:
        return put(source_.little_endian(4));
      case kBinGet:
        return get(source_.little_endian(1));
      case kLongBinGet:
        return get(source_.little_endian(4));
      case kDup:
        return push(top());
      default:
        return false;
    }
  }

  // Python numbers them in turn.
  bool put(std::uint64_t number) {
    if (number > memo_.size()) damaged();
    if (number == memo_.size())
      memo_.push_back(top());
    else
      memo_[number] = top();
    return true;
  }

  bool get(std::uint64_t number) {
    if (number >= memo_.size()) damaged();
    return push(memo_[number]);
  }

  bool push(Value value) {
    if (stack_.size() == kMostOnStack) too_large();
    stack_.push_back(value);
    return true;
  }

  Value top() const { return stack_[last(1)]; }

  Value pop() {
    const auto value = top();
    stack_.pop_back();
    return value;
  }

  [[noreturn]] void damaged() const {
    source_.fail(fmt::format("is damaged at byte {}: no valid pickle there", source_.position()));
  }

  [[noreturn]] void too_large() const {
    source_.fail(fmt::format("has more values than a snapshot that can be read, at byte {}",
                             source_.position()));
  }

  [[noreturn]] void refuse(std::uint8_t opcode) {
    switch (opcode) {
      case kGlobal:
      case kInst: {
        const auto module = source_.line(), name = source_.line();
        refuse_code(module + "." + name);
      }
      case kStackGlobal:
        refuse_code(named_on_stack());
      default:
        if (kCalls.find(static_cast<char>(opcode)) != std::string_view::npos) refuse_code("");
        source_.fail(
            fmt::format("has the opcode {:#04x} at byte {}, which no memory snapshot has: "
                        "it is damaged, or something else",
                        opcode, source_.position()));
    }
  }

  std::string named_on_stack() const {
    if (stack_.size() < 2) return "";
    const auto module = stack_[stack_.size() - 2], name = stack_.back();
    if (module.kind != Kind::kText || name.kind != Kind::kText) return "";
    return pickle_.text(module) + "." + pickle_.text(name);
  }

  [[noreturn]] void refuse_code(const std::string& name) const {
    constexpr std::size_t kShown = 80;
    source_.fail(fmt::format(
        "would run code{} when it is unpickled, at byte {}. So it is no memory snapshot, which is "
        "plain data. Nothing was run",
        name.empty() ? "" : " (" + printable(name.substr(0, kShown)) + ")", source_.position()));
  }

  Pickle& pickle_;
  PickleSource& source_;
  const Pickle::Condense& condense_;
  std::vector<Value> stack_, memo_;
  std::vector<std::size_t> marks_;
};

Pickle Pickle::read(const std::string& path, const Condense& condense) {
  Pickle pickle;
  PickleSource source(path);
  PickleMachine(pickle, source, condense).run();
  return pickle;
}

const std::string& Pickle::text(PickleValue value) const {
  static const std::string none;
  const bool is_text = value.kind == PickleKind::kText || value.kind == PickleKind::kBytes;
  return is_text ? texts_[static_cast<std::size_t>(value.number)] : none;
}

std::span<const PickleValue> Pickle::items(PickleValue value) const {
  const bool holds = value.kind == PickleKind::kList || value.kind == PickleKind::kTuple ||
                     value.kind == PickleKind::kDict;
  if (!holds) return {};
  return containers_[static_cast<std::size_t>(value.number)];
}

PickleValue Pickle::find(PickleValue dict, std::string_view key) const {
  if (dict.kind != PickleKind::kDict) return {};
  const auto fields = items(dict);
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2)
    if (fields[i].kind == PickleKind::kText && text(fields[i]) == key) return fields[i + 1];
  return {};
}

}  // namespace peakbench::programs

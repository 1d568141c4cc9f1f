// Python's pickle format as far as plain data goes: dicts, lists, tuples, texts, bytes, numbers.
// Nothing is executed: what would call, import or build anything is refused with its name. For the
// module's own use.
//
// Source of the opcodes: Python's pickletools.py, protocols 2 to 5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace peakbench::programs {

class PickleSource;

enum class PickleKind : std::uint8_t {
  kNone,
  kBool,
  kInteger,
  kReal,
  kText,
  kBytes,
  kList,
  kTuple,
  kDict,
  kRecord  // a dict that the reader's caller took over
};

struct PickleValue {
  PickleKind kind = PickleKind::kNone;
  std::int64_t number = 0;  // of a bool, an integer, a record; else where the value is kept

  bool operator==(const PickleValue&) const = default;
};

// A file's values. A text and a container are kept once, however often the file refers to them.
class Pickle {
 public:
  // Asked for each dict that becomes a list's element: the number of the record that it is to be
  // from now on, whose fields are then forgotten; nullopt: it stays. Most of a snapshot are such.
  using Condense = std::function<std::optional<std::int64_t>(const Pickle&, PickleValue dict)>;

  // The file is read as it goes, never held. Throws ConfigError with the path, one sentence: cannot
  // be read, empty, no pickle, cut short, damaged, anything but plain data, beyond the limits.
  static Pickle read(const std::string& path, const Condense& condense);

  PickleValue top() const { return top_; }
  const std::string& text(PickleValue value) const;             // of kText and kBytes
  std::span<const PickleValue> items(PickleValue value) const;  // of a dict: keys, values in turn
  // kNone where the value is no dict, or has no such key.
  PickleValue find(PickleValue dict, std::string_view key) const;

 private:
  friend class PickleMachine;

  std::vector<std::string> texts_;
  std::vector<std::vector<PickleValue>> containers_;
  PickleValue top_;
};

}  // namespace peakbench::programs

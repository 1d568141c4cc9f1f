// The table of the axes: everything that may differ between two cases. Each row defines how an axis
// is named, requested, written, read, shown and compared. docs/how-to/recipes.md says what a new
// axis needs.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "records/setting.h"

namespace peakbench::records {

enum class Axis {
  kKind,
  kModel,
  kStrategy,
  kDevice,
  kDeviceOptions,
  kDtype,
  kBatchSize,
  kSequenceLength,
  kAllocator,
  kRanks,
  kTorch,
  kBuild,
  kSeed,
};

// Samples of a batch, tokens of a sample: no product of these overflows anywhere.
inline constexpr std::int64_t kMostSamples = 1'000'000'000;

// Of a training.
inline constexpr std::int64_t kMostRanks = 1'000'000;

// Lists that multiply: of a suite, and of an option that may be given several times.
struct Asked {
  const char* list = "";            // the suite's key: "batch_sizes"
  const char* option = "";          // "-b,--batch"
  const char* type = "";            // what its help calls a value: "N"
  const char* help = "";            // a sentence without its dot
  const char* otherwise = nullptr;  // the value where nothing is asked for; nullptr: each model's
  bool required = false;            // something must be asked for
  bool has_options = false;         // a value may be NAME,key=value
  bool is_list = false;             // commas belong to the value
  std::vector<std::string> one_of = {};  // the texts there are; empty: any
  // Other names of them, as spelling() in base/nearest.h has them.
  std::map<std::string, std::string> also_called = {};
  std::int64_t most = kMostSamples;  // of an integer, which is 1 or more
};

// Patterns have {} in the place of the value.
struct AxisWords {
  Axis axis;
  const char* name;  // in rules, published figures and messages: "strategy", "batch_size"
  const char* field = nullptr;  // in JSON: "strategies", "batch_size"; nullptr: the name
  const char* label = nullptr;  // display name: "batch size"; nullptr: the name
  // In the case id: "b{}". Empty where the id leaves the axis out.
  const char* in_id = "";
  // Default value, omitted from ids and headings. nullptr: the value is always shown.
  const char* unsaid = nullptr;
  // In JSON, too, for records that stay as they were before the axis.
  bool unsaid_in_json = false;
  // Cases that differ in it alone are rows of one table, and take turns where they are timed.
  bool is_row = false;
  // In a table's heading and in a line: "{} tokens a sample", "sequence {}". Empty where the model,
  // the stack and the device have places of their own. A line has the heading's unless it has its
  // own.
  const char* in_heading = "";
  const char* in_line = "";
  std::optional<Asked> asked = std::nullopt;  // nullopt: one value for a run
};

struct AxisRow : AxisWords {
  bool is_integer = false;
  std::string (*text)(const Setting&) = nullptr;  // as typed and as in the id; empty: no value
  nlohmann::ordered_json (*json)(const Setting&) = nullptr;
  void (*read)(const Fields&, const AxisRow&, Setting&) = nullptr;  // throws FieldError
  void (*copy)(const Setting& from, Setting& to) = nullptr;
  // From what was typed; throws ConfigError with what was expected of `called`. nullptr where only
  // plugins know what there is.
  void (*parse)(const std::string& called, const std::string& text, const AxisRow&,
                Setting&) = nullptr;
};

// In the order of case ids and JSON.
const std::vector<AxisRow>& axes();
const AxisRow& row_of(Axis axis);
// Those with lists, which are those that a rule can name.
std::vector<const AxisRow*> asked_axes();
// Throws ConfigError with the nearest name.
const AxisRow& axis_named(const std::string& name);

// The value where the id says one, in its pattern; else empty.
std::string in_id(const AxisRow& row, const Setting& setting);
// The same with another pattern and form of the value: in_words(row.in_heading, "1,024").
std::string in_words(const std::string& pattern, const std::string& value);

// By the axes' names, an integer or a text each, what the id says of the setting:
// {"batch_size": 1, "device": "cpu", ...}.
nlohmann::json plain_values(const Setting& setting);

// The values of all axes but one, to be compared and sorted by.
nlohmann::json all_but(const Setting& setting, Axis axis);
// The values that all cases of a table have. Cases without a stack are rows by their names, unless
// each is run with several releases or builds.
nlohmann::json table_of(const Setting& setting);
bool same_in(const AxisRow& row, const Setting& a, const Setting& b);

// Every axis as a field of its own, but for what stays unsaid.
void append_json(nlohmann::ordered_json& object, const Setting& setting);
void read_setting(const Fields& fields, Setting& setting);

}  // namespace peakbench::records

#include "records/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <type_traits>

#include "base/errors.h"
#include "base/json.h"
#include "base/nearest.h"
#include "records/case_json.h"

namespace peakbench::records {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using Stack = std::vector<Selection>;
using MaybeInteger = std::optional<std::int64_t>;

template <class Value>
constexpr bool kIsInteger =
    std::is_same_v<Value, std::int64_t> || std::is_same_v<Value, MaybeInteger>;

std::string text_of(const Selection& model) { return selection_text(model); }
std::string text_of(const Stack& stack) { return stack_text(stack); }
std::string text_of(const std::string& text) { return text; }
std::string text_of(const json& object) { return object.empty() ? "" : json_line(object); }
// A batch: those of cases are never 0, but for what is not known.
std::string text_of(std::int64_t batch) {
  return batch == kUnknownBatch ? "" : std::to_string(batch);
}
std::string text_of(const MaybeInteger& value) { return value ? std::to_string(*value) : ""; }
std::string text_of(std::uint64_t value) { return std::to_string(value); }
std::string text_of(CaseKind kind) { return to_string(kind); }

ordered_json json_of(const Selection& model) { return to_json(model); }
ordered_json json_of(const Stack& stack) {
  auto list = ordered_json::array();
  for (const auto& strategy : stack) list.push_back(to_json(strategy));
  return list;
}
ordered_json json_of(const MaybeInteger& value) { return optional_to_json(value); }
ordered_json json_of(CaseKind kind) { return to_string(kind); }
template <class Value>
ordered_json json_of(const Value& value) {
  return value;
}

void read_into(const Fields& fields, const char* field, Selection& model) {
  model = read_selection(fields.child(field));
}
void read_into(const Fields& fields, const char* field, Stack& stack) {
  fields.require(field);
  fields.each(field, [&](const Fields& item) { stack.push_back(read_selection(item)); });
}
void read_into(const Fields& fields, const char* field, std::string& text) {
  text = fields.get<std::string>(field);
}
void read_into(const Fields& fields, const char* field, json& object) {
  object = fields.get_or<json>(field, json::object());
}
void read_into(const Fields& fields, const char* field, std::int64_t& value) {
  value = fields.get(field, kMeasured);
}
void read_into(const Fields& fields, const char* field, MaybeInteger& value) {
  value = fields.maybe(field, kMeasured);
}
void read_into(const Fields& fields, const char* field, std::uint64_t& value) {
  value = fields.get_or<std::uint64_t>(field, 0);
}
void read_into(const Fields& fields, const char* field, CaseKind& kind) {
  try {
    kind = case_kind_from(fields.get<std::string>(field));
  } catch (const std::invalid_argument& error) {
    throw FieldError(fields.pointer(field), error.what());
  }
}

std::int64_t integer_from(const std::string& called, const std::string& text, const AxisRow& row) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const bool whole = rest == end && !text.empty();
  const auto most = row.asked->most;
  if (whole && ((error == std::errc() && value > most) ||
                (error == std::errc::result_out_of_range && text.front() != '-')))
    throw ConfigError(
        fmt::format("{}: expected an integer of {} or less, got {}", called, most, text));
  if (!whole || error != std::errc() || value < 1)
    throw ConfigError(fmt::format("{}: expected an integer of 1 or more, got {}", called, text));
  return value;
}

std::string one_of(const std::string& text, const AxisRow& row) {
  const auto& known = row.asked->one_of;
  if (known.empty() || std::ranges::count(known, text) != 0) return text;
  const auto wanted = spelling(text);
  if (const auto also = row.asked->also_called.find(wanted); also != row.asked->also_called.end())
    return also->second;
  const auto same = [&](const std::string& one) { return spelling(one) == wanted; };
  if (const auto found = std::ranges::find_if(known, same); found != known.end()) return *found;
  throw ConfigError(fmt::format("unknown {} \"{}\"{}", row.label, text, suggestion(text, known)));
}

// A row whose values are a member of Setting; what to do with them follows from its type.
template <auto kMember>
AxisRow row_for(AxisWords words) {
  using Value = std::remove_reference_t<decltype(std::declval<Setting&>().*kMember)>;
  if (words.field == nullptr) words.field = words.name;
  if (words.label == nullptr) words.label = words.name;
  if (*words.in_line == '\0') words.in_line = words.in_heading;
  AxisRow row{std::move(words)};
  row.is_integer = kIsInteger<Value>;
  row.text = [](const Setting& setting) { return text_of(setting.*kMember); };
  row.json = [](const Setting& setting) { return json_of(setting.*kMember); };
  row.copy = [](const Setting& from, Setting& to) { to.*kMember = from.*kMember; };
  // Files from before an axis lack its field.
  row.read = [](const Fields& fields, const AxisRow& self, Setting& setting) {
    if (self.unsaid == nullptr || fields.find(self.field))
      read_into(fields, self.field, setting.*kMember);
  };
  if constexpr (kIsInteger<Value>)
    row.parse = [](const std::string& called, const std::string& text, const AxisRow& self,
                   Setting& setting) { setting.*kMember = integer_from(called, text, self); };
  if constexpr (std::is_same_v<Value, std::string>)
    row.parse = [](const std::string&, const std::string& text, const AxisRow& self,
                   Setting& setting) { setting.*kMember = one_of(text, self); };
  return row;
}

std::vector<AxisRow> make_table() {
  return {
      row_for<&Setting::kind>({.axis = Axis::kKind,
                               .name = "kind",
                               .in_id = "{}",
                               .unsaid = facts_of(CaseKind::kStrategy).word,
                               .unsaid_in_json = true,
                               .in_heading = "{}"}),
      row_for<&Setting::model>({.axis = Axis::kModel,
                                .name = "model",
                                .in_id = "{}",
                                .asked = Asked{.list = "models",
                                               .option = "-m,--model",
                                               .type = "NAME[,key=value]",
                                               .help = "Model, with options: vit-l-16, "
                                                       "qwen2.5-0.5b,layers=4",
                                               .required = true,
                                               .has_options = true}}),
      row_for<&Setting::strategies>(
          {.axis = Axis::kStrategy,
           .name = "strategy",
           .field = "strategies",
           .in_id = "{}",
           .is_row = true,
           .asked = Asked{.list = "strategies",
                          .option = "-s,--strategy",
                          .type = "NAME[,key=value][+NAME...]",
                          .help = "Strategy or stack of strategies; the first is the reference for "
                                  "differences",
                          .required = true,
                          .has_options = true}}),
      row_for<&Setting::device>(
          {.axis = Axis::kDevice,
           .name = "device",
           .in_id = "{}",
           .asked = Asked{.list = "devices",
                          .option = "-d,--device",
                          .type = "NAME",
                          .help = "Device: cpu (default), cuda:0, emulated:h100-80gb, auto",
                          .otherwise = "cpu",
                          .has_options = true}}),
      row_for<&Setting::device_options>(
          {.axis = Axis::kDeviceOptions, .name = "device_options", .label = "device options"}),
      row_for<&Setting::dtype>(
          {.axis = Axis::kDtype,
           .name = "dtype",
           .in_id = "{}",
           .in_heading = "{}",
           .asked = Asked{.list = "dtypes",
                          .option = "--dtype",
                          .type = "TYPE",
                          .help = "Data type of the weights: fp32 (default), bf16",
                          .otherwise = "fp32",
                          .one_of = {"fp32", "bf16"},
                          .also_called = {{"float32", "fp32"},
                                          {"float", "fp32"},
                                          {"torchfloat32", "fp32"},
                                          {"torchfloat", "fp32"},
                                          {"bfloat16", "bf16"},
                                          {"torchbfloat16", "bf16"}}}}),
      row_for<&Setting::batch_size>({.axis = Axis::kBatchSize,
                                     .name = "batch_size",
                                     .label = "batch size",
                                     .in_id = "b{}",
                                     .in_heading = "batch {}",
                                     .asked = Asked{.list = "batch_sizes",
                                                    .option = "-b,--batch",
                                                    .type = "N",
                                                    .help = "Batch size, in samples (default 1)",
                                                    .otherwise = "1"}}),
      row_for<&Setting::sequence_length>(
          {.axis = Axis::kSequenceLength,
           .name = "sequence_length",
           .label = "sequence length",
           .in_id = "s{}",
           .in_heading = "{} tokens a sample",
           .in_line = "sequence {}",
           .asked =
               Asked{
                   .list = "sequence_lengths",
                   .option = "--seq",
                   .type = "N",
                   .help =
                       "Sequence length, in tokens; language models only (default: the model's)"}}),
      row_for<&Setting::allocator>(
          {.axis = Axis::kAllocator,
           .name = "allocator",
           .in_id = "{}",
           .unsaid = "",
           .in_heading = "allocator {}",
           .asked =
               Asked{.list = "allocator",
                     .option = "--allocator",
                     .type = "KEY:VALUE[,KEY:VALUE...]",
                     .help =
                         "Settings of the CUDA allocator, as in PYTORCH_CUDA_ALLOC_CONF: "
                         "expandable_segments:True, max_split_size_mb:128; default: PyTorch's own",
                     .otherwise = "",
                     .is_list = true}}),
      row_for<&Setting::ranks>(
          {.axis = Axis::kRanks,
           .name = "ranks",
           .field = "world_size",
           .label = "number of ranks",
           .in_id = "ranks-{}",
           .unsaid = "",
           .unsaid_in_json = true,
           .is_row = true,
           .in_line = "{} ranks",
           .asked = Asked{.list = "ranks",
                          .option = "--ranks",
                          .type = "N",
                          .help = "Ranks of a model in Python under strategies such as ddp and "
                                  "fsdp; --batch is for each rank",
                          .most = kMostRanks}}),
      row_for<&Setting::torch>(
          {.axis = Axis::kTorch,
           .name = "torch",
           .label = "release of PyTorch",
           .in_id = "torch-{}",
           .unsaid = "",
           .unsaid_in_json = true,
           .is_row = true,
           .in_line = "PyTorch {}",
           .asked = Asked{.list = "torch",
                          .option = "--torch",
                          .type = "VERSION",
                          .help = "PyTorch version to run with, from `peakbench workers`: 2.15, "
                                  "2.15.0+cu132, newest; several are compared (default: "
                                  "$PEAKBENCH_TORCH, else the environment's)"}}),
      row_for<&Setting::build>(
          {.axis = Axis::kBuild,
           .name = "build",
           .in_id = "build-{}",
           .unsaid = "",
           .unsaid_in_json = true,
           .is_row = true,
           .in_line = "build {}",
           .asked =
               Asked{.list = "builds",
                     .option = "--build",
                     .type = "DIR[,plugins=DIR]",
                     .help = "Build of Peakbench to run with: an installation or build folder with "
                             "bin/peakbench-worker; several are compared (default: this one)",
                     .has_options = true}}),
      row_for<&Setting::seed>({.axis = Axis::kSeed, .name = "seed"}),
  };
}

}  // namespace

const std::vector<AxisRow>& axes() {
  static const auto table = make_table();
  return table;
}

const AxisRow& row_of(Axis axis) {
  const auto found = std::ranges::find(axes(), axis, &AxisRow::axis);
  if (found == axes().end()) throw std::logic_error("an axis without a row");
  return *found;
}

std::vector<const AxisRow*> asked_axes() {
  std::vector<const AxisRow*> asked;
  for (const auto& row : axes())
    if (row.asked) asked.push_back(&row);
  return asked;
}

const AxisRow& axis_named(const std::string& name) {
  std::vector<std::string> names;
  for (const auto* row : asked_axes()) {
    if (name == row->name) return *row;
    names.emplace_back(row->name);
  }
  throw ConfigError(fmt::format("unknown key \"{}\"{}", name, suggestion(name, names)));
}

std::string in_words(const std::string& pattern, const std::string& value) {
  const auto hole = pattern.find("{}");
  if (hole == std::string::npos || value.empty()) return "";
  return pattern.substr(0, hole) + value + pattern.substr(hole + 2);
}

std::string in_id(const AxisRow& row, const Setting& setting) {
  const auto text = row.text(setting);
  return row.unsaid != nullptr && text == row.unsaid ? "" : in_words(row.in_id, text);
}

json plain_values(const Setting& setting) {
  auto values = json::object();
  for (const auto& row : axes())
    if (!in_id(row, setting).empty())
      values[row.name] = row.is_integer ? json(row.json(setting)) : json(row.text(setting));
  return values;
}

json all_but(const Setting& setting, Axis axis) {
  auto values = json::array();
  for (const auto& row : axes())
    if (row.axis != axis) values.push_back(json(row.json(setting)));
  return values;
}

json table_of(const Setting& setting) {
  const bool is_named = facts_of(setting.kind).has_stack || !setting.torch.empty() ||
                        !setting.build.empty();  // rows of one program
  auto values = json::array();
  for (const auto& row : axes())
    if (!row.is_row && (is_named || row.axis != Axis::kModel))
      values.push_back(json(row.json(setting)));
  return values;
}

bool same_in(const AxisRow& row, const Setting& a, const Setting& b) {
  return row.json(a) == row.json(b);
}

void append_json(ordered_json& object, const Setting& setting) {
  for (const auto& row : axes())
    if (!row.unsaid_in_json || row.text(setting) != row.unsaid)
      object[row.field] = row.json(setting);
}

void read_setting(const Fields& fields, Setting& setting) {
  for (const auto& row : axes()) row.read(fields, row, setting);
}

}  // namespace peakbench::records

#include "plan/rules.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>

#include "plan/case_id.h"

namespace peakbench::plan {
namespace {

bool is_pattern(const std::string& text) { return text.find('*') != std::string::npos; }

std::int64_t number_of(const std::string& name, const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && rest == end && value >= 1) {
    check_integer(name, value, 1, kMostSamples);
    return value;
  }
  throw ConfigError(fmt::format("{}: expected an integer of 1 or more, got {}", name, text));
}

bool agrees(const result::Selection& wanted, const result::Selection& actual) {
  if (wanted.id != actual.id) return false;
  return std::ranges::all_of(wanted.options.items(), [&](const auto& item) {
    const auto found = actual.options.find(item.key());
    return found != actual.options.end() && *found == item.value();
  });
}

// A rule's model or stack holds what its author wrote, not what the suite's tables add to every
// case.
std::string field_text(const result::CaseSpec& spec, const std::string& name) {
  if (name == "model") return selection_text(spec.model);
  if (name == "strategy") return stack_text(spec.strategies);
  return name == "device" ? spec.device : spec.dtype;
}

}  // namespace

Exclude::Exclude(const Rule& rule, const Resolver& resolver) {
  for (const auto& [name, text] : rule.fields) {
    at_place(rule.where, name, [&, &name = name, &text = text] { read(name, text, resolver); });
  }
}

void Exclude::read(const std::string& name, const std::string& text, const Resolver& resolver) {
  if (name == "batch_size") {
    batch_size_ = number_of(name, text);
  } else if (name == "sequence_length") {
    sequence_length_ = number_of(name, text);
  } else if (is_pattern(text)) {
    patterns_.emplace_back(name, text);
  } else if (name == "model") {
    model_ = resolver.model("", text).use.selection;
  } else if (name == "strategy") {
    stack_ = resolver.stack("", text).selections;
  } else if (name == "device") {
    devices_ = resolver.devices("", text);
  } else {
    dtype_ = resolver.dtype("", text);
  }
}

bool Exclude::matches(const result::CaseSpec& spec) const {
  if (model_ && !agrees(*model_, spec.model)) return false;
  if (stack_ && !std::ranges::equal(*stack_, spec.strategies, agrees)) return false;
  if (batch_size_ && *batch_size_ != spec.batch_size) return false;
  if (sequence_length_ && sequence_length_ != spec.sequence_length) return false;
  if (!devices_.empty() && std::ranges::count(devices_, spec.device) == 0) return false;
  if (!dtype_.empty() && dtype_ != spec.dtype) return false;
  return std::ranges::all_of(patterns_, [&](const auto& field) {
    return fnmatch(field.second.c_str(), field_text(spec, field.first).c_str(), 0) == 0;
  });
}

Axes include_axes(const Rule& rule, const Resolver& resolver, const Axes& suite) {
  Axes axes = suite;
  for (const auto& [name, text] : rule.fields) {
    at_place(rule.where, name, [&, &name = name, &text = text] {
      if (name == "model") axes.models = {resolver.model("", text)};
      if (name == "strategy") axes.stacks = {resolver.stack("", text)};
      if (name == "device") axes.devices = resolver.devices("", text);
      if (name == "dtype") axes.dtypes = {resolver.dtype("", text)};
      if (name == "batch_size") axes.batch_sizes = {number_of(name, text)};
      if (name == "sequence_length") axes.sequence_lengths = {number_of(name, text)};
    });
  }
  return axes;
}

}  // namespace peakbench::plan

#include "plan/rules.h"

#include <fnmatch.h>

#include <algorithm>

namespace peakbench::plan {
namespace {

using result::Axis;
using result::AxisRow;

bool is_pattern(const std::string& text) { return text.find('*') != std::string::npos; }

// A rule's model or stack holds what its author wrote, not what the suite's tables add to every
// case.
bool agrees(const result::Selection& wanted, const result::Selection& actual) {
  if (wanted.id != actual.id) return false;
  return std::ranges::all_of(wanted.options.items(), [&](const auto& item) {
    const auto found = actual.options.find(item.key());
    return found != actual.options.end() && *found == item.value();
  });
}

// Calls `visit` with the axis and the text of each field; errors are told at its place.
template <class Visit>
void each_field(const Rule& rule, const Visit& visit) {
  for (const auto& [name, text] : rule.fields)
    at_place(rule.where, name,
             [&, &name = name, &text = text] { visit(result::axis_named(name), text); });
}

}  // namespace

Exclude::Exclude(const Rule& rule, const Resolver& resolver) {
  each_field(rule, [&](const AxisRow& row, const std::string& text) { read(row, text, resolver); });
}

void Exclude::read(const AxisRow& row, const std::string& text, const Resolver& resolver) {
  if (!row.is_integer && is_pattern(text))
    patterns_[&row] = text;
  else if (row.axis == Axis::kModel)
    model_ = resolver.model("", text).use.selection;
  else if (row.axis == Axis::kStrategy)
    stack_ = resolver.stack("", text).selections;
  else
    values_[&row] = resolver.values(row, "", text);
}

bool Exclude::matches(const result::Setting& setting) const {
  if (model_ && !agrees(*model_, setting.model)) return false;
  if (stack_ && !std::ranges::equal(*stack_, setting.strategies, agrees)) return false;
  const auto is_one_of = [&](const auto& field) {
    return std::ranges::any_of(field.second, [&](const result::Setting& value) {
      return same_in(*field.first, value, setting);
    });
  };
  return std::ranges::all_of(values_, is_one_of) &&
         std::ranges::all_of(patterns_, [&](const auto& field) {
           return fnmatch(field.second.c_str(), field.first->text(setting).c_str(), 0) == 0;
         });
}

Axes include_axes(const Rule& rule, const Resolver& resolver, const Axes& suite) {
  Axes axes = suite;
  each_field(rule, [&](const AxisRow& row, const std::string& text) {
    if (row.axis == Axis::kModel)
      axes.models = {resolver.model("", text)};
    else if (row.axis == Axis::kStrategy)
      axes.stacks = {resolver.stack("", text)};
    else
      axes.others[row.axis] = resolver.values(row, "", text);
  });
  return axes;
}

}  // namespace peakbench::plan

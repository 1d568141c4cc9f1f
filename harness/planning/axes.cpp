#include "planning/axes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

#include "planning/device.h"

namespace peakbench::planning {
namespace {

using planning::Kind;
using records::Axis;

records::Setting setting_of(const Build& build) {
  records::Setting setting;
  setting.torch = build.torch;
  setting.build = build.build;
  return setting;
}

}  // namespace

void check_integer(const std::string& name, std::int64_t value, std::int64_t least,
                   std::int64_t most) {
  if (value < least)
    throw ConfigError(
        fmt::format("{}: expected an integer of {} or more, got {}", name, least, value));
  if (value > most)
    throw ConfigError(
        fmt::format("{}: expected an integer of {} or less, got {}", name, most, value));
}

Resolver::Resolver(const Request& request, const Catalogue& catalogue,
                   std::span<const Build> builds, const Build& build)
    : request_(request),
      catalogue_(catalogue),
      builds_(builds),
      build_(build),
      here_(setting_of(build)) {}

Choice Resolver::model(const std::string& section, const std::string& text) const {
  return at_place(request_.where, section + "/" + text, [&] {
    return catalogue_.choose(Kind::kModel, parse_selection(text), request_.model_options);
  });
}

Stack Resolver::stack(const std::string& section, const std::string& text) const {
  return at_place(request_.where, section + "/" + text, [&] {
    return make_stack(catalogue_, parse_stack(text), request_.strategy_options);
  });
}

// Tables are looked up by ids.
const Offer& Resolver::named(Kind kind, const std::string& id) const {
  const Offer& offer = catalogue_.find(kind, id);
  if (offer.entry->id == id) return offer;
  throw ConfigError(fmt::format("a table for \"{}\" is named \"{}\"", id, offer.entry->id));
}

Values Resolver::devices(const std::string& text) const {
  // Which cards there are, only the hook knows.
  const auto& hook = build_.devices;
  if (const auto id = parse_selection(text).id; hook && !is_device(id)) hook(id);
  const auto device = normal_device(text);
  const auto names =
      hook ? hook(device) : std::vector<std::string>{device == "auto" ? "cpu" : device};
  Values values(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) values[i].device = names[i];
  return values;
}

// Of a rule: which builds it is about. Which ones there are was decided before.
Values Resolver::of_build(const records::AxisRow& row, const std::string& text) const {
  const auto is_named = [&](const Build& one) {
    return planning::is_start_of(text, row.text(setting_of(one))) ||
           std::ranges::count(one.also, text) != 0;
  };
  if (!request_.is_narrowed && std::ranges::none_of(builds_, is_named)) {
    std::vector<std::string> known;
    for (const auto& one : builds_)
      if (auto value = row.text(setting_of(one)); !value.empty()) known.push_back(value);
    throw ConfigError(
        fmt::format("{} \"{}\": no case has it; the run has {}", row.name, text,
                    known.empty() ? "one" : fmt::format("{}", fmt::join(known, ", "))));
  }
  return is_named(build_) ? Values{here_} : Values{};
}

Values Resolver::values(const records::AxisRow& row, const std::string& section,
                        const std::string& text) const {
  return at_place(request_.where, section + "/" + text, [&] {
    if (row.axis == Axis::kDevice) return devices(text);
    if (is_of_build(row.axis)) return of_build(row, text);
    Values values(1);
    if (row.axis == Axis::kAllocator) {
      values[0].allocator = normal_allocator(text);
      return values;
    }
    row.parse(section.empty() ? row.name : section, text, row, values[0]);
    return values;
  });
}

void Resolver::check_tables() const {
  const auto check = [&](Kind kind, const std::string& section, const auto& tables) {
    for (const auto& [id, options] : tables) {
      const std::string key = fmt::format("{}/{}", section, id);
      const Offer& offer =
          at_place(request_.where, key, [&, &id = id] { return std::cref(named(kind, id)); });
      for (const auto& [name, text] : options) {
        at_place(request_.where, fmt::format("{}/{}", key, name),
                 [&, &name = name, &text = text] { catalogue_.value(offer, name, text); });
      }
    }
  };
  check(Kind::kModel, "model_options", request_.model_options);
  check(Kind::kStrategy, "strategy_options", request_.strategy_options);
}

void Resolver::resolve(const records::AxisRow& row, const std::string& text, Axes& axes) const {
  const std::string section = row.asked->list;
  if (row.axis == Axis::kModel) {
    axes.models.push_back(model(section, text));
  } else if (row.axis == Axis::kStrategy) {
    axes.stacks.push_back(stack(section, text));
  } else {
    for (auto& value : values(row, section, text))
      axes.others[row.axis].push_back(std::move(value));
  }
}

Axes Resolver::axes() const {
  Axes axes;
  std::vector<std::string> mistakes;
  for (const auto* row : records::asked_axes()) {
    if (is_of_build(row->axis)) {
      axes.others[row->axis] = {here_};
      continue;
    }
    for (const auto& text : request_.lists.at(row->axis)) try {
        resolve(*row, text, axes);
      } catch (const ConfigError& error) {
        mistakes.emplace_back(error.what());
      }
  }
  if (mistakes.size() == 1) throw ConfigError(mistakes.front());
  if (!mistakes.empty())
    throw ConfigError(
        fmt::format("{} mistakes:\n  {}", mistakes.size(), fmt::join(mistakes, "\n  ")));
  return axes;
}

namespace {

using records::AxisRow;

bool is_pattern(const std::string& text) { return text.find('*') != std::string::npos; }

// A rule's model or stack holds what its author wrote, not what the suite's tables add to every
// case.
bool agrees(const records::Selection& wanted, const records::Selection& actual) {
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
             [&, &name = name, &text = text] { visit(records::axis_named(name), text); });
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

bool Exclude::matches(const records::Setting& setting) const {
  if (model_ && !agrees(*model_, setting.model)) return false;
  if (stack_ && !std::ranges::equal(*stack_, setting.strategies, agrees)) return false;
  const auto is_one_of = [&](const auto& field) {
    return std::ranges::any_of(field.second, [&](const records::Setting& value) {
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

}  // namespace peakbench::planning

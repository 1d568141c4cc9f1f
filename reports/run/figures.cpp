#include "reports/run/figures.h"

#include <cmath>

#include "base/json.h"
#include "records/axes.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"

namespace peakbench::reports {
namespace {

using nlohmann::ordered_json;

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string value_text(const ordered_json& value) {
  if (value.is_string()) return printable(value.get<std::string>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number_integer()) return std::to_string(value.get<std::int64_t>());
  return printable(json_line(value));
}

FactView fact(const std::string& name, const ordered_json& value) {
  const auto called = [&](const std::string& unit) {
    return printable(spaced(name.substr(0, name.size() - unit.size())));
  };
  if (value == 0 && name == "memory_limit_bytes") return {called("_bytes"), "none", ""};
  if (value == 0 && name == "threads") return {"threads", "default", ""};
  if (value.is_number_integer() && ends_with(name, "_bytes")) {
    const auto bytes = value.get<std::int64_t>();
    return {called("_bytes"), gib(bytes) + " GiB", grouped(bytes) + " bytes"};
  }
  if (value.is_number_integer() && ends_with(name, "_ns")) {
    const auto time = value.get<std::int64_t>();
    return {called("_ns"), duration(time), grouped(time) + " ns"};
  }
  if (value.is_number_integer() && ends_with(name, "_s"))
    return {called("_s"), std::to_string(value.get<std::int64_t>()) + " s", ""};
  return {printable(spaced(name)), value_text(value), ""};
}

void add_facts(const ordered_json& object, const std::string& prefix,
               std::vector<FactView>& facts) {
  for (const auto& [name, value] : object.items()) {
    if (value.is_null() || (value.is_string() && value.get<std::string>().empty())) continue;
    if (value.is_object()) {
      add_facts(value, prefix + name + " ", facts);
    } else {
      facts.push_back(fact(prefix + name, value));
    }
  }
}

// Below the last digit of either figure: the same for who reads a table. The bytes are there, too.
bool is_same_as_shown(std::int64_t bytes, std::int64_t reference) {
  constexpr double kLeastGib = 0.0005, kLeastFraction = 5e-6;
  const auto size = std::abs(static_cast<double>(bytes));
  return size < kLeastGib * (1 << 30) && size < kLeastFraction * static_cast<double>(reference);
}

// With as many digits as tell a change from none: "+0.0" with a colour says two things at once.
std::string telling_percent(double fraction) {
  constexpr double kRoundsToNothing = 0.0005;
  if (fraction == 0 || std::abs(fraction) >= kRoundsToNothing) return signed_percent(fraction);
  return (fraction > 0 ? "+" : "") + decimal(fraction * 100, 1);
}

using nlohmann::json;

std::string for_people(const json& value) {
  if (value.is_number_integer()) return grouped(value.get<std::int64_t>());
  return value.is_string() ? printable(value.get<std::string>()) : "";
}

}  // namespace

std::vector<FactView> facts_view(const ordered_json& object) {
  std::vector<FactView> facts;
  if (object.is_object()) add_facts(object, "", facts);
  return facts;
}

BytesView bytes_view(std::int64_t bytes) { return {.gib = gib(bytes), .bytes = grouped(bytes)}; }

std::optional<BytesView> bytes_view(const std::optional<std::int64_t>& bytes) {
  return bytes ? std::optional(bytes_view(*bytes)) : std::nullopt;
}

DeltaView delta_view(std::int64_t ours, std::int64_t reference) {
  const std::int64_t bytes = ours - reference;
  const auto shown = is_same_as_shown(bytes, reference) ? 0 : bytes;
  return {.gib = signed_gib(shown),
          .bytes = signed_grouped(bytes),
          .percent = reference ? telling_percent(ratio_of(shown, reference)) : "",
          .less = shown<0, .more = shown> 0};
}

std::vector<TickView> ticks_view(double low, double high, int about) {
  const double rough = (high - low) / about;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.5, 2.0, 1.0}) {
    if (factor * power >= rough) step = factor * power;
  }
  std::vector<TickView> ticks;
  for (double n = std::ceil(low / step - 1e-9); n * step <= high * (1 + 1e-9); ++n) {
    ticks.push_back({.label = plain_number(std::round(n * step * 1e9) / 1e9),
                     .at = fraction((n * step - low) / (high - low))});
  }
  return ticks;
}

std::vector<SettingView> settings_view(const json& values) {
  std::vector<SettingView> list;
  for (const auto& row : records::axes()) {
    const auto found = values.find(row.name);
    if (found == values.end() || *row.in_heading == 0) continue;
    const auto value = for_people(*found);
    list.push_back({.short_text = records::in_words(row.in_line, value),
                    .name = row.name,
                    .label = row.label,
                    .value = value,
                    .text = records::in_words(row.in_heading, value)});
  }
  return list;
}

std::string Sources::number(const records::Published& published) {
  const std::string source = printable(published.source), url = web_address(published.url);
  for (const SourceView& known : list_)
    if (known.source == source && known.url == url) return known.number;
  const std::string number = std::to_string(list_.size() + 1);
  list_.push_back({number, "source-" + number, source, url});
  return number;
}

}  // namespace peakbench::reports

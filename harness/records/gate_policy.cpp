#include "records/gate_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "base/nearest.h"
#include "base/numbers.h"

namespace peakbench::records {
namespace {

[[noreturn]] void expected(const std::string& where, const char* what, const std::string& text) {
  throw ConfigError(fmt::format("{}: expected {}, got \"{}\"", where, what, text));
}

constexpr double kMostPercent = 1000;  // ten times the base and more is no gate

// "2%", "0.5 %": 0.02, 0.005; nullopt for anything else.
std::optional<double> percentage(const std::string& text) {
  if (text.empty() || text.back() != '%') return std::nullopt;
  auto end = text.size() - 1;
  while (end > 0 && text[end - 1] == ' ') --end;
  const auto value = number_from_text(std::string_view(text).substr(0, end), {0, kMostPercent});
  return value ? std::optional<double>(*value / 100) : std::nullopt;
}

Tolerance tolerance(const std::string& text, const std::string& where) {
  if (text == "0") return {};
  if (const auto fraction = percentage(text)) return {0, *fraction};
  if (const auto bytes = bytes_from_text(text)) return {*bytes, 0};
  expected(where, "0, a size like 512 or 1MiB, or a part of the base like 0.5%", text);
}

bool fails(const std::string& text, const std::string& where) {
  if (text != "fail" && text != "pass") expected(where, "fail or pass", text);
  return text == "fail";
}

std::optional<double> margin(const std::string& text, const std::string& where) {
  if (text == "off") return std::nullopt;
  const auto fraction = percentage(text);
  if (!fraction || *fraction <= 0 || *fraction > 1)
    expected(where, "a part of the step above 0% and up to 100%, like 2%, or off", text);
  return fraction;
}

double false_alarms(const std::string& text, const std::string& where) {
  const auto fraction = percentage(text);
  if (!fraction || *fraction < 0.0001 || *fraction > 0.2)
    expected(where, "a rate from 0.01% to 20%, like 1%", text);
  return *fraction;
}

std::string percent_text(double fraction) { return fmt::format("{:.12g}%", fraction * 100); }

std::string text_of(const Tolerance& tolerance) {
  return tolerance.fraction != 0 ? percent_text(tolerance.fraction)
                                 : fmt::format("{}", tolerance.bytes);
}

}  // namespace

std::int64_t Tolerance::allowed(std::int64_t base) const {
  constexpr double kMost = 4e18;  // with `bytes`, at most 1e18, below 64 bits
  const double part = std::floor(fraction * static_cast<double>(base));
  return bytes + static_cast<std::int64_t>(std::clamp(part, 0.0, kMost));
}

const std::vector<std::string>& gate_keys() {
  static const std::vector<std::string> keys{"requested",  "allocated",    "reserved",
                                             "throughput", "false_alarms", "failed",
                                             "missing",    "verdict",      "phases"};
  return keys;
}

void set_gate(GatePolicy& policy, const std::string& key, const std::string& text,
              const std::string& where) {
  if (key == "requested") {
    policy.requested = tolerance(text, where);
  } else if (key == "allocated") {
    policy.allocated = tolerance(text, where);
  } else if (key == "reserved") {
    policy.reserved = tolerance(text, where);
  } else if (key == "throughput") {
    policy.throughput = margin(text, where);
  } else if (key == "false_alarms") {
    policy.false_alarms = false_alarms(text, where);
  } else if (key == "failed") {
    policy.failed_fails = fails(text, where);
  } else if (key == "missing") {
    policy.missing_fails = fails(text, where);
  } else if (key == "verdict") {
    policy.verdict_fails = fails(text, where);
  } else if (key == "phases") {
    policy.phases_fail = fails(text, where);
  } else {
    throw ConfigError(
        fmt::format("{}: no key \"{}\" of a gate{}", where, key, suggestion(key, gate_keys())));
  }
}

nlohmann::json to_json(const GatePolicy& policy) {
  return {{"requested", text_of(policy.requested)},
          {"allocated", text_of(policy.allocated)},
          {"reserved", text_of(policy.reserved)},
          {"throughput", policy.throughput ? percent_text(*policy.throughput) : "off"},
          {"false_alarms", percent_text(policy.false_alarms)},
          {"failed", policy.failed_fails ? "fail" : "pass"},
          {"missing", policy.missing_fails ? "fail" : "pass"},
          {"verdict", policy.verdict_fails ? "fail" : "pass"},
          {"phases", policy.phases_fail ? "fail" : "pass"}};
}

}  // namespace peakbench::records

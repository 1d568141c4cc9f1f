// Figures that several tables show. Every text of a view is for people and safe to show.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/render/record.h"

namespace peakbench::reports {

struct FactView {
  std::string name, value, exact;

  FieldValues fields() const {
    return {{"name", name, "What it is, in words"},
            {"value", value, "For people"},
            {"exact", exact, "The exact figure where `value` is rounded, else empty"}};
  }
  bool operator==(const FactView&) const = default;
};

// Any JSON as named facts, nested names joined; `_bytes` and `_ns` in people's units.
std::vector<FactView> facts_view(const nlohmann::ordered_json& object);

struct BytesView {
  std::string gib, bytes;

  FieldValues fields() const {
    return {{"gib", gib, "GiB, three decimals"},
            {"bytes", bytes, "The exact count, with separators"}};
  }
};

BytesView bytes_view(std::int64_t bytes);
std::optional<BytesView> bytes_view(const std::optional<std::int64_t>& bytes);

struct DeltaView {
  std::string gib, bytes, percent;
  bool less = false, more = false;

  FieldValues fields() const {
    return {{"gib", gib, "Signed GiB"},
            {"bytes", bytes, "Signed exact bytes"},
            {"percent", percent, "Signed per cent of the reference"},
            {"less", less, "Below the reference"},
            {"more", more, "Above the reference"}};
  }
};

DeltaView delta_view(std::int64_t ours, std::int64_t reference);

struct TickView {
  std::string label, at;

  FieldValues fields() const {
    return {{"label", label, "The value at the tick"}, {"at", at, "Its place, 0 to 1"}};
  }
};

// Round values between, about so many.
std::vector<TickView> ticks_view(double low, double high, int about);

}  // namespace peakbench::reports

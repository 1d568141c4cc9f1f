#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "records/published.h"
#include "reports/render/record.h"

namespace peakbench::reports {

// Figures in several tables. Every text of a view is safe to show.

struct FactView {
  std::string name, value, exact;

  FieldValues fields() const {
    return {{"name", name, "What it is, in words"},
            {"value", value, "For people"},
            {"exact", exact, "The exact figure where `value` is rounded, else empty"}};
  }
  bool operator==(const FactView&) const = default;
};

// Any JSON as named facts, nested names joined; `_bytes` and `_ns` in readable units.
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

// Parts of a case's heading in addition to its model, stack and device: dtype, batch size, ...

struct SettingView {
  std::string name, label, value, text, short_text;

  FieldValues fields() const {
    return {{"name", name, "As in a suite's rules: batch_size"},
            {"label", label, "batch size"},
            {"value", value, "1,024"},
            {"text", text, "1,024 tokens a sample"},
            {"short", short_text, "sequence 1,024"}};
  }
};

// `values` are those of records::plain_values.
std::vector<SettingView> settings_view(const nlohmann::json& values);

// Who published the figures that a report shows, numbered in order of appearance.

struct SourceView {
  std::string number, anchor, source, url;

  FieldValues fields() const {
    return {{"number", number, "1-based"},
            {"anchor", anchor, "An id for links"},
            {"source", source, "Who"},
            {"url", url, "Where"}};
  }
};

class Sources {
 public:
  std::string number(const records::Published& published);
  const std::vector<SourceView>& view() const { return list_; }

 private:
  std::vector<SourceView> list_;
};

}  // namespace peakbench::reports

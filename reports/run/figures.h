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
  PEAKBENCH_VIEW(text(name, "What it is, in words"),
                 text(value, "For people"),
                 text(exact, "The exact figure where `value` is rounded, else empty"));
  bool operator==(const FactView&) const = default;
};

// Any JSON as named facts, nested names joined; `_bytes` and `_ns` in readable units.
std::vector<FactView> facts_view(const nlohmann::ordered_json& object);

struct BytesView {
  PEAKBENCH_VIEW(text(gib, "GiB, three decimals"),
                 text(bytes, "The exact count, with separators"));
};

BytesView bytes_view(std::int64_t bytes);
std::optional<BytesView> bytes_view(const std::optional<std::int64_t>& bytes);

struct DeltaView {
  PEAKBENCH_VIEW(text(gib, "Signed GiB"),
                 text(bytes, "Signed exact bytes"),
                 text(percent, "Signed per cent of the reference"),
                 flag(less, "Below the reference"),
                 flag(more, "Above the reference"));
};

DeltaView delta_view(std::int64_t ours, std::int64_t reference);

struct TickView {
  PEAKBENCH_VIEW(text(label, "The value at the tick"),
                 text(at, "Its place, 0 to 1"));
};

// Round values between, about so many.
std::vector<TickView> ticks_view(double low, double high, int about);

// Parts of a case's heading in addition to its model, stack and device: dtype, batch size, ...

struct SettingView {
  std::string short_text;
  PEAKBENCH_VIEW(text(name, "As in a suite's rules: batch_size"),
                 text(label, "batch size"),
                 text(value, "1,024"),
                 text(text, "1,024 tokens a sample"),
                 shown("short", short_text, "sequence 1,024"));
};

// `values` are those of records::plain_values.
std::vector<SettingView> settings_view(const nlohmann::json& values);

// Who published the figures that a report shows, numbered in order of appearance.

struct SourceView {
  PEAKBENCH_VIEW(text(number, "1-based"),
                 text(anchor, "An id for links"),
                 text(source, "Who"),
                 text(url, "Where"));
};

class Sources {
 public:
  std::string number(const records::Published& published);
  const std::vector<SourceView>& view() const { return list_; }

 private:
  std::vector<SourceView> list_;
};

}  // namespace peakbench::reports

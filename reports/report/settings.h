// What a heading says of a case beside its model, stack and device: dtype, batch size, ...
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/render/record.h"

namespace peakbench::reports {

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

// `values` are those of result::plain_values.
std::vector<SettingView> settings_view(const nlohmann::json& values);

}  // namespace peakbench::reports

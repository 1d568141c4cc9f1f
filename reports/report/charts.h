// The library of the interactive charts.
#pragma once

#include <optional>
#include <string>

#include "reports/render/record.h"

namespace peakbench::reports {

struct ChartsView {
  std::string script, licence;

  FieldValues fields() const {
    return {{"script", script, "Its source"}, {"licence", licence, "Its licence"}};
  }
};

// It lies beside the templates; nullopt where Peakbench was built without it.
std::optional<ChartsView> charts_view(const std::string& builtin_template_directory);

}  // namespace peakbench::reports

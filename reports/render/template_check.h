// Reading a template: tags with their lines, partials put in place, every name checked. No
// rendering here.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reports/render/record.h"

namespace peakbench::reports {

struct TemplateFile {
  std::string path, text;
};

// Finds a template by name, "html/table.mustache"; throws std::out_of_range if it does not exist.
using LoadTemplate = std::function<TemplateFile(const std::string& name)>;

struct CheckedTemplate {
  std::string text;                 // partials in place
  std::vector<std::string> errors;  // "FILE:LINE: ...", in order; empty = may be rendered
};

CheckedTemplate check_template(const std::string& name, const Field& scope,
                               const LoadTemplate& load);

}  // namespace peakbench::reports

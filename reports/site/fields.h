// The fields that the site's templates may use (reports/render/fields.h): listed in
// docs/reference/site_fields.md, which a test keeps equal.
#pragma once

#include <string>
#include <vector>

#include "reports/render/fields.h"

namespace peakbench::site {

struct Template {
  std::string name;  // "site/index.html.mustache"
  const reports::Field& fields;
};

const reports::Field& index_fields();
const reports::Field& trend_fields();
const reports::Field& runs_fields();

std::string fields_as_markdown();

}  // namespace peakbench::site

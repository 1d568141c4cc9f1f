// docs/reference/site_fields.md: what the site's templates may use; a test keeps both equal.
#pragma once

#include <string>

namespace peakbench::site {

std::string fields_as_markdown();

}  // namespace peakbench::site

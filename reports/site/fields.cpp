#include "reports/site/fields.h"

#include "reports/site/index_view.h"
#include "reports/site/runs_view.h"
#include "reports/site/trend_view.h"

namespace peakbench::site {
namespace {

using reports::Field;
using reports::fields_of;

void describe(const Field& parent, const std::string& path, std::string& out) {
  out += "\n#### " + path + "\n\n" + reports::table_of(parent);
  for (const Field& field : parent.fields)
    if (!field.fields.empty() && field.name != "site")
      describe(field, path + " `" + field.name + "`", out);
}

}  // namespace

std::string fields_as_markdown() {
  std::string out;
  describe(fields_of<SiteView>(), "On every page: `site`", out);
  describe(fields_of<IndexView>(), "index.html", out);
  describe(fields_of<TrendView>(), "trend.html", out);
  describe(fields_of<RunsView>(), "runs.html", out);
  return out;
}

}  // namespace peakbench::site

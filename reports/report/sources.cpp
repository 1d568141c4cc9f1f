#include "reports/report/sources.h"

#include "reports/render/text.h"

namespace peakbench::reports {

std::string Sources::number(const result::Published& published) {
  const std::string source = printable(published.source), url = web_address(published.url);
  for (const SourceView& known : list_)
    if (known.source == source && known.url == url) return known.number;
  const std::string number = std::to_string(list_.size() + 1);
  list_.push_back({number, "source-" + number, source, url});
  return number;
}

}  // namespace peakbench::reports

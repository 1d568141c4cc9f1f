// Who published the figures that a report shows, numbered in order of appearance.
#pragma once

#include <string>
#include <vector>

#include "reports/render/record.h"
#include "result/published.h"

namespace peakbench::reports {

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
  std::string number(const result::Published& published);
  const std::vector<SourceView>& view() const { return list_; }

 private:
  std::vector<SourceView> list_;
};

}  // namespace peakbench::reports

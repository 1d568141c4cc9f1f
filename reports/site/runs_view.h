// The list of runs, in pages.
#pragma once

#include <string>
#include <vector>

#include "reports/site/views.h"

namespace peakbench::site {

struct PageLinkView {
  std::string number, href;
  bool here = false;

  FieldValues fields() const {
    return {{"number", number, "1-based"},
            {"href", href, "From this page"},
            {"here", here, "This page"}};
  }
};

struct RunsView {
  SiteView site;
  std::vector<RunView> runs;
  std::vector<PageLinkView> pages;
  std::string page;

  FieldValues fields() const {
    return {{"site", site, "On every page"},
            {"runs", runs, "Runs of all branches, the newest first"},
            {"several_pages", pages.size() > 1, "There is more than one page"},
            {"pages", pages, "All pages of the list"},
            {"page", page, "1-based"}};
  }
};

RunsView runs_view(const Contents& contents, std::size_t page);
std::size_t runs_pages(const Contents& contents);

}  // namespace peakbench::site

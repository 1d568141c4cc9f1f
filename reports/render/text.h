// Text made safe to show: names come from plugins, suites and command lines, and may hold anything.
#pragma once

#include <string>
#include <vector>

#include "result/selection_text.h"
#include "text/columns.h"
#include "text/printable.h"

namespace peakbench::reports {

using peakbench::display_width;
using peakbench::fit;
using peakbench::fit_middle;
using peakbench::printable;

std::string escape_html(const std::string& text);      // text and quoted attributes, XML's too
std::string escape_markdown(const std::string& text);  // GitHub's dialect, table cells included

std::string shell_quoted(
    const std::vector<std::string>& arguments);   // one line, whatever the arguments hold
std::string web_address(const std::string& url);  // as given if http or https, else empty
std::string file_stem(const std::string& text);   // a-z 0-9 and dashes, at most 60, never empty

using result::selection_text;                            // lora,rank=16
std::string stack_text(const result::Setting& setting);  // lora,rank=16+checkpointing
// What ran it, where the run has several: "PyTorch 2.15.0"; else empty.
std::string build_text(const result::Setting& setting);
// What a case is called among those of its group: its stack or, where its kind has none, its model;
// and with what ran it.
std::string name_alone(const result::Setting& setting);
std::string row_name(const result::Setting& setting);

}  // namespace peakbench::reports

#pragma once

#include <string>
#include <vector>

#include "base/columns.h"
#include "base/printable.h"
#include "records/setting.h"

namespace peakbench::reports {

// Text made safe to show: names come from plugins, suites and command lines, and may hold anything.

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

using records::selection_text;                            // lora,rank=16
std::string stack_text(const records::Setting& setting);  // lora,rank=16+checkpointing
// What ran it, where the run has several: "PyTorch 2.15.0"; else empty.
std::string build_text(const records::Setting& setting);
// What a case is called among those of its group: its stack or, where its kind has none, its model;
// and with what ran it.
std::string name_alone(const records::Setting& setting);
std::string row_name(const records::Setting& setting);

// Line breaks in long words of a page: by default browsers break `train.py:42` or
// `encoder.layers.0.mlp` nowhere or, with a style, at any letter.

// The same page with a `<wbr>` behind separators and before capitals of words of more than 20
// characters, and in runs of 20 characters without either. Text alone: tags, scripts, styles and
// pictures stay as they are.
std::string with_soft_breaks(const std::string& html);

}  // namespace peakbench::reports

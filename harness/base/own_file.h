// Files that users may read, change and replace. Peakbench recognizes its own by a mark at the end,
// with a checksum of everything before it. A file without the mark has another origin, and one that
// was changed belongs to its author: neither is ever replaced or deleted.
#pragma once

#include <string>
#include <vector>

#include "base/folder.h"

namespace peakbench::files {

// `text` with the mark: a comment in .html, .md and .svg; a member "written_by" in a .json that
// ends in "}\n"; a last line in all other files.
std::string marked(const std::string& name, std::string text);

// A regular file, not a link, that ends in a mark which fits.
bool is_own_file(const std::string& path);
bool is_own_file(const Folder& folder, const std::string& name);

// Throws ConfigError that names the first of the files that is there and not ours.
void refuse_strangers(const std::string& folder, const std::vector<std::string>& names);

}  // namespace peakbench::files

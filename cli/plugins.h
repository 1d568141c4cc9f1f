#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planning/catalogue.h"
#include "planning/manifest.h"
#include "planning/worker.h"

namespace peakbench::cli {

// Folders, separated by ':' as in PATH, for every command that has --plugins.
inline constexpr const char* kPluginsVariable = "PEAKBENCH_PLUGINS";
std::vector<planning::Folder> folders_of_environment();

// Folders of the environment, of the suite, and of the command line.
std::vector<planning::Folder> named_folders(const std::vector<std::string>& typed,
                                            const std::vector<planning::Folder>& of_suite = {});

// The worker's own before them. A worker without any still runs with those that are named.
std::vector<planning::Folder> with_own(const planning::Worker& worker,
                                       std::vector<planning::Folder> named);

// "DIR (PEAKBENCH_PLUGINS), DIR (--plugins)".
std::string in_words(const std::vector<planning::Folder>& folders);

// The command line as it has to be typed where the variable is not set.
std::vector<std::string> without_environment(std::vector<std::string> typed);

// Strategies in the order in which they are stacked, models by family as their plugin has them.
std::vector<planning::Offer> entries_of(const planning::Found& found, planning::Kind kind);

// Name, default, range, unit, what it is, within `width` columns. Ends with a newline.
std::string option_line(const planning::Option& option, int width);

nlohmann::ordered_json entry_json(const planning::Offer& listed, planning::Kind kind);

}  // namespace peakbench::cli

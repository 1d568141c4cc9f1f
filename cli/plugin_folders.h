// Where plugins are looked for: with the program, and in the folders that somebody names.
#pragma once

#include <string>
#include <vector>

#include "manifest/worker.h"

namespace peakbench::cli {

// Folders, separated by ':' as in PATH, for every command that has --plugins.
inline constexpr const char* kPluginsVariable = "PEAKBENCH_PLUGINS";
std::vector<manifest::Folder> folders_of_environment();

// Those of the environment, of the suite, and typed ones.
std::vector<manifest::Folder> named_folders(const std::vector<std::string>& typed,
                                            const std::vector<manifest::Folder>& of_suite = {});

// The worker's own before them. A worker without any still runs with those that are named.
std::vector<manifest::Folder> with_own(const manifest::Worker& worker,
                                       std::vector<manifest::Folder> named);

// "DIR (PEAKBENCH_PLUGINS), DIR (--plugins)".
std::string in_words(const std::vector<manifest::Folder>& folders);

// The command line as it has to be typed where the variable is not set.
std::vector<std::string> without_environment(std::vector<std::string> typed);

}  // namespace peakbench::cli

#include "cli/plugin_folders.h"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>
#include <utility>

#include "errors/errors.h"
#include "files/file.h"
#include "text/printable.h"
#include "text/utf8.h"

namespace peakbench::cli {

std::vector<manifest::Folder> folders_of_environment() {
  std::vector<manifest::Folder> folders;
  const char* value = std::getenv(kPluginsVariable);
  if (value == nullptr) return folders;
  if (!is_utf8(value))
    throw ConfigError(fmt::format("{}: {} is not UTF-8, which results (JSON) require",
                                  kPluginsVariable, escaped_bytes(value)));
  std::istringstream list(value);
  for (std::string folder; std::getline(list, folder, ':');)
    if (!folder.empty()) folders.emplace_back(folder, kPluginsVariable);
  return folders;
}

std::vector<manifest::Folder> named_folders(const std::vector<std::string>& typed,
                                            const std::vector<manifest::Folder>& of_suite) {
  auto folders = folders_of_environment();
  folders.insert(folders.end(), of_suite.begin(), of_suite.end());
  folders.insert(folders.end(), typed.begin(), typed.end());
  return folders;
}

std::vector<manifest::Folder> with_own(const manifest::Worker& worker,
                                       std::vector<manifest::Folder> named) {
  if (named.empty() || files::is_folder(worker.plugins))
    named.insert(named.begin(), {worker.plugins, "the installation"});
  return named;
}

std::string in_words(const std::vector<manifest::Folder>& folders) {
  std::string words;
  for (const auto& folder : folders)
    words += fmt::format("{}{} ({})", words.empty() ? "" : ", ", printable(folder.path),
                         printable(folder.named_by));
  return words;
}

std::vector<std::string> without_environment(std::vector<std::string> typed) {
  for (const auto& folder : folders_of_environment()) {
    typed.emplace_back("--plugins");
    typed.push_back(folder.path);
  }
  return typed;
}

}  // namespace peakbench::cli

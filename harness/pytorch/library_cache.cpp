#include "pytorch/library_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "errors/errors.h"

namespace peakbench::pytorch {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOwnAlone = 0700, kOfOthers = 0077;

[[noreturn]] void cannot(const fs::path& folder, const char* why) {
  throw ConfigError(fmt::format("{}: {}", folder.string(), why));
}

fs::path folder_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

void make_folder(const fs::path& folder) {
  if (mkdir(folder.c_str(), kOwnAlone) != 0 && errno != EEXIST)
    cannot(folder, std::strerror(errno));
}

// What is above the cache is the user's own affair where it is there.
void make_parents(const fs::path& folder) {
  std::error_code ignored;
  if (fs::is_directory(folder, ignored) || folder == folder.parent_path()) return;
  make_parents(folder.parent_path());
  make_folder(folder);
}

void close_to_others(const fs::path& folder) {
  struct stat facts {};
  if (stat(folder.c_str(), &facts) != 0) cannot(folder, std::strerror(errno));
  if (!S_ISDIR(facts.st_mode)) cannot(folder, "is no folder");
  if (facts.st_uid != geteuid())
    cannot(folder, "is another user's; set XDG_CACHE_HOME to a folder of your own");
  if ((facts.st_mode & kOfOthers) != 0 && chmod(folder.c_str(), kOwnAlone) != 0)
    cannot(folder, std::strerror(errno));
}

}  // namespace

fs::path cache_folder(const std::string& kind) {
  const fs::path chosen = folder_of("XDG_CACHE_HOME"), home = folder_of("HOME");
  if (chosen.is_absolute()) return chosen / "peakbench" / kind;
  if (home.is_absolute()) return home / ".cache/peakbench" / kind;
  throw ConfigError(
      "neither XDG_CACHE_HOME nor HOME names a folder to keep what is compiled here: set one of "
      "them");
}

void make_cache_folder(const fs::path& folder) {
  const fs::path ours = folder.parent_path();  // .../peakbench
  make_parents(ours.parent_path());
  for (const fs::path& each : {ours, folder}) {
    make_folder(each);
    close_to_others(each);
  }
}

std::string why_not_trusted(const fs::path& path) {
  struct stat facts {};
  if (lstat(path.c_str(), &facts) != 0) return std::strerror(errno);
  if (facts.st_uid != geteuid()) return "is another user's";
  const bool has_mode = !S_ISLNK(facts.st_mode);
  if (has_mode && (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "can be written by others";
  return "";
}

std::string why_not_loaded(const fs::path& library) {
  struct stat facts {};
  if (lstat(library.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) return "is no file";
  return why_not_trusted(library);
}

}  // namespace peakbench::pytorch

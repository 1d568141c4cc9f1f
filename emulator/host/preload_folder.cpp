#include "host/preload_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "errors/errors.h"

namespace peakbench::emulator {
namespace {

namespace fs = std::filesystem;

bool can_be_preloaded(const fs::path& path) {
  return path.string().find_first_of(" :$") == std::string::npos;
}

// Where a temporary folder may lie, the user's own choice first.
std::vector<fs::path> temporary_folders() {
  std::vector<fs::path> folders;
  if (const char* chosen = std::getenv("TMPDIR"); chosen && *chosen)
    folders.push_back(fs::absolute(chosen));
  for (const char* usual : {"/tmp", "/var/tmp", "/dev/shm"}) folders.emplace_back(usual);
  std::erase_if(folders, [](const fs::path& folder) { return !can_be_preloaded(folder); });
  return folders;
}

class Link {
 public:
  explicit Link(const fs::path& target) {
    int problem = 0;
    for (const auto& folder : temporary_folders()) {
      std::string pattern = (folder / "peakbench-emulator.XXXXXX").string();
      if (mkdtemp(pattern.data()) == nullptr) {  // for this user alone
        problem = errno;
        continue;
      }
      folder_ = pattern;
      std::error_code error;
      fs::create_directory_symlink(target, path(), error);
      if (!error) return;
      problem = error.value();
      remove();
    }
    throw ConfigError(
        fmt::format("{}: the dynamic loader takes no path with a space, a colon or a dollar in "
                    "LD_PRELOAD, and no folder for a link to it can be made: {}. Set TMPDIR to a "
                    "folder that you may write to, or install Peakbench elsewhere",
                    target.string(), std::strerror(problem)));
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() { remove(); }

  fs::path path() const { return folder_ / "lib"; }

 private:
  // Nothing but the link and its folder: what it leads to stays.
  void remove() const {
    std::error_code ignored;
    fs::remove(path(), ignored);
    fs::remove(folder_, ignored);
  }

  fs::path folder_;
};

}  // namespace

fs::path preload_folder(const fs::path& folder) {
  if (can_be_preloaded(folder)) return folder;
  // For as long as this process lives: what it started may start others.
  static std::mutex mutex;
  static std::map<fs::path, std::unique_ptr<Link>> links;
  const std::lock_guard lock(mutex);
  auto& link = links[folder];
  if (!link) link = std::make_unique<Link>(folder);
  return link->path();
}

}  // namespace peakbench::emulator

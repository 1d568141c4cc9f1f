#include "launch/plugin_builds.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <system_error>
#include <tuple>

#include "base/file.h"
#include "base/regular_file.h"

namespace peakbench::launch {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{256} << 10;

// A new file under the name has another inode; one that is written in place another time of change,
// which nobody can set.
using Version = std::tuple<dev_t, ino_t, off_t, time_t, long>;

bool version_of(const std::string& path, Version& version) {
  struct stat seen {};
  if (stat(path.c_str(), &seen) != 0) return false;
  version = {seen.st_dev, seen.st_ino, seen.st_size, seen.st_ctim.tv_sec, seen.st_ctim.tv_nsec};
  return true;
}

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
      throw std::bad_alloc();
  }
  void add(const char* bytes, std::size_t count) {
    if (EVP_DigestUpdate(context_.get(), bytes, count) != 1) throw std::bad_alloc();
  }
  std::string digits() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
    unsigned int size = 0;
    if (EVP_DigestFinal_ex(context_.get(), sum.data(), &size) != 1) throw std::bad_alloc();
    std::string text;
    for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", sum[i]);
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

std::string hash_of(const std::string& path) {
  files::RegularFile file(path);
  if (!file.is_open()) return "";
  Sha256 sum;
  std::vector<char> piece(kPieceBytes);
  try {
    while (const auto count = file.read(piece.data(), piece.size())) sum.add(piece.data(), count);
  } catch (const std::system_error&) {
    return "";
  }
  return sum.digits();
}

}  // namespace

std::string content_hash(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::pair<Version, std::string>> known;  // by path
  const std::lock_guard lock(mutex);
  Version version;
  if (!version_of(path, version)) return "";
  const auto found = known.find(path);
  if (found != known.end() && found->second.first == version) return found->second.second;
  auto hash = hash_of(path);
  known[path] = {version, hash};
  return hash;
}

namespace {

void add(const char* kind, const records::PluginUse& use,
         std::vector<records::PluginBuild>& builds) {
  if (use.path.empty()) return;
  builds.push_back({kind, use.selection.id, std::filesystem::path(use.path).filename().string(),
                    content_hash(use.path)});
}

// The scripts that a command names. What they import is not looked for.
void add_scripts(const records::ProgramCommand& program,
                 std::vector<records::PluginBuild>& builds) {
  for (const auto& word : program.arguments) {
    const bool is_script = word.ends_with(".py") || word.ends_with(".sh") ||
                           (&word == &program.arguments.front() && word.find('/') != 0 &&
                            word.find('/') != std::string::npos);
    const auto path = (std::filesystem::path(program.folder) / word).string();
    if (is_script && files::why_no_file(path).empty() && files::is_there(path))
      builds.push_back({records::kScript, word, std::filesystem::path(word).filename().string(),
                        content_hash(path)});
  }
}

}  // namespace

std::vector<records::PluginBuild> plugin_builds(const planning::PlannedCase& planned) {
  std::vector<records::PluginBuild> builds;
  add("model", planned.model, builds);
  for (const auto& use : planned.strategies) add("strategy", use, builds);
  if (planned.program) add_scripts(*planned.program, builds);
  return builds;
}

std::string other_builds(const std::vector<records::PluginBuild>& then,
                         const std::vector<records::PluginBuild>& now) {
  const auto changes = records::changed_plugins(then, now);
  if (changes.empty()) return "";
  const auto& first = changes.front();
  std::set<std::string> files;
  for (const auto& change : changes) files.insert(change.file);
  const bool is_script = first.kind == records::kScript;
  auto text = fmt::format("{} {} (sha256 {} then, {} now)", first.file,
                          is_script ? "has changed" : "is another build",
                          records::short_hash(first.before), records::short_hash(first.now));
  if (files.size() > 1)
    text += fmt::format(", and {} more {}", files.size() - 1,
                        is_script ? "scripts have" : "plugins are");
  return text;
}

std::string replaced_since(const std::vector<records::PluginBuild>& then,
                           const planning::PlannedCase& planned) {
  const auto what = other_builds(then, plugin_builds(planned));
  if (what.empty()) return "";
  return fmt::format("{} while the case ran: {}",
                     planned.program ? "a script was changed" : "a plugin was replaced", what);
}

}  // namespace peakbench::launch

#include "host/compiled_library.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/atomic_file.h"
#include "base/errors.h"
#include "base/file.h"
#include "base/fnv1a.h"
#include "base/printable.h"
#include "base/regular_file.h"
#include "host/command.h"
#include "host/compiler.h"

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
  throw ConfigError("there is no cache folder for compiled libraries: set XDG_CACHE_HOME or HOME");
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

namespace {

constexpr auto kLongestCompilation = std::chrono::seconds(300);
constexpr auto kTimeToTidyUp = std::chrono::seconds(2);  // a compiler's driver removes its files
constexpr std::size_t kMostMessages = std::size_t{16} << 20;

std::string fingerprint(const fs::path& sources, const std::vector<std::string>& flags) {
  std::vector<fs::path> all;
  for (const auto& entry : fs::recursive_directory_iterator(sources))
    if (entry.is_regular_file()) all.push_back(entry.path());
  std::ranges::sort(all);
  std::uint64_t hash = kFnv1a64Start;
  for (const auto& file : all)
    hash = fnv1a_64(files::read_regular_file(file.string(), files::kMostSmallText), hash);
  for (const auto& flag : flags) hash = fnv1a_64(flag, hash);
  return fmt::format("{:016x}", hash);
}

std::string file_name(const std::string& version, const std::string& fingerprint) {
  std::string name = version + "-" + fingerprint + ".so";
  std::ranges::replace_if(
      name,
      [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '+'; },
      '-');
  return name;
}

std::string first_error(const std::string& output) {
  const auto at = output.find("error: ");
  const auto from = at == std::string::npos ? 0 : at;
  return output.substr(from, std::min<std::size_t>(output.find('\n', from) - from, 120));
}

// Why there is no `library`; empty where there is.
std::string why_failed(const std::string& compiler, const process::CommandSaid& said,
                       const std::string& library) {
  using process::Stop;
  if (!said.start_error.empty())
    return fmt::format("{} cannot be started: {}", compiler, said.start_error);
  if (said.stopped == Stop::kTimeout)
    return fmt::format("{} took more than {} s", compiler, kLongestCompilation.count());
  if (said.stopped == Stop::kOutput)
    return fmt::format("{} printed more than {} MiB", compiler, kMostMessages >> 20);
  if (said.stopped == Stop::kInterrupt) return "interrupted";
  if (said.ok() && files::is_there(library)) return "";
  return fmt::format("{} could not compile them: {}", compiler, first_error(said.err + said.out));
}

// What a compiler writes to, under a name that files::remove_unfinished() knows, until it is whole.
class Unfinished {
 public:
  explicit Unfinished(const fs::path& library)
      : library_(library), path_(fmt::format("{}.tmp-{}", library.string(), getpid())) {
    files::remove_unfinished(library.parent_path().string(), {library.filename().string()});
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() { unlink(path_.c_str()); }

  const std::string& path() const { return path_; }

  void finish() const {
    std::error_code error;
    if (chmod(path_.c_str(), kOwnAlone) != 0) files::cannot_write(path_, errno);
    fs::rename(path_, library_, error);
    if (error) files::cannot_write(library_.string(), error.value());
    if (const auto why = why_not_loaded(library_); !why.empty())
      throw ConfigError(fmt::format("{} {}; set XDG_CACHE_HOME to a folder that keeps permissions",
                                    library_.string(), why));
  }

 private:
  fs::path library_;
  std::string path_;
};

std::vector<std::string> command_for(const TorchInUse& torch, const LibrarySources& sources,
                                     const std::vector<std::string>& flags,
                                     const std::string& output) {
  auto command = find_compiler();
  command.insert(command.end(), flags.begin(), flags.end());
  const auto whole = (sources.folder / sources.whole).string();
  command.insert(command.end(), {"-I", sources.folder.string(), whole});
  // Python opens PyTorch's libraries for itself alone, so what uses them names them.
  command.insert(command.end(), {"-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined"});
  for (const auto& name : sources.libraries)
    command.push_back((torch.folder / "lib" / name).string());
  command.insert(command.end(), {"-o", output});
  return command;
}

// Compiles one library, alone among the processes that need it.
class Compilation {
 public:
  Compilation(const TorchInUse& torch, const LibrarySources& sources,
              const std::function<bool()>& cancelled)
      : torch_(torch), sources_(sources), cancelled_(cancelled), flags_(compiler_flags(torch)) {}

  fs::path place() const {
    return cache_folder(sources_.kind) /
           file_name(torch_.version, fingerprint(sources_.folder, flags_));
  }

  fs::path library() const {
    const fs::path library = place(), cache = library.parent_path();
    if (is_kept(library)) return library;
    find_compiler();  // none: nothing is made
    make_cache_folder(cache);
    const files::FileLock lock(
        library.string() + ".lock",
        [&] { say(fmt::format("waiting for another process, which compiles {}", what())); },
        cancelled_);
    if (!lock.is_held()) throw ConfigError("interrupted");
    if (why_not_loaded(library).empty()) return library;  // the other one has compiled it
    say(fmt::format("compiling {} (once, about 30 s)", what()));
    compile(library);
    return library;
  }

 private:
  bool is_kept(const fs::path& library) const {
    if (!files::is_there(library.string())) return false;
    make_cache_folder(library.parent_path());
    const auto why = why_not_loaded(library);
    if (!why.empty())
      say(fmt::format("{} {}: it is not loaded, and compiled anew", library.string(), why));
    return why.empty();
  }

  void compile(const fs::path& library) const {
    const Unfinished unfinished(library);
    const auto command = command_for(torch_, sources_, flags_, unfinished.path());
    const auto said = process::ask_command({.arguments = command,
                                            .patience = kLongestCompilation,
                                            .grace = kTimeToTidyUp,
                                            .most_output = kMostMessages,
                                            .cancelled = cancelled_});
    if (const auto why = why_failed(command[0], said, unfinished.path()); !why.empty())
      throw ConfigError(why);
    unfinished.finish();
  }

  std::string what() const {
    return fmt::format("the {} library for PyTorch {}", sources_.kind, torch_.version);
  }
  static void say(const std::string& sentence) {
    std::fprintf(stderr, "peakbench: %s\n", escaped_controls(sentence).c_str());
  }

  const TorchInUse& torch_;
  const LibrarySources& sources_;
  const std::function<bool()>& cancelled_;
  std::vector<std::string> flags_;
};

}  // namespace

CompiledLibrary compiled_library(const TorchInUse& torch, const LibrarySources& sources,
                                 const std::function<bool()>& cancelled) {
  try {
    return {Compilation(torch, sources, cancelled).library(), ""};
  } catch (const std::exception& error) {
    return {{}, error.what()};
  }
}

namespace {

// The one that is kept already, if it may be loaded; else empty. Says, makes and compiles nothing.
fs::path kept_library(const TorchInUse& torch, const LibrarySources& sources) {
  try {
    const std::function<bool()> never = [] { return false; };
    const auto library = Compilation(torch, sources, never).place();
    return why_not_loaded(library).empty() ? library : fs::path();
  } catch (const std::exception&) {
    return {};
  }
}

// The one that the installation brings; nullopt where it has none for this PyTorch.
std::optional<LibraryInUse> library_installed(const std::optional<TorchInUse>& torch,
                                              const LibraryBuilds& builds) {
  const auto is_there = [](const fs::path& path) { return files::is_there(path.string()); };
  const auto of_worker = [&](const std::string& version) {
    return builds.workers / ("torch-" + version) / builds.in_worker;
  };
  LibraryInUse own{is_there(builds.built) ? builds.built : of_worker(builds.built_for),
                   builds.built_for, ""};
  if (!is_there(own.path))
    own.problem = "which PyTorch the program has is not known before it starts";
  if (!torch) return own;
  if (torch->version == builds.built_for && own.problem.empty()) return own;
  if (const auto path = of_worker(torch->version); is_there(path))
    return LibraryInUse{path, torch->version, ""};
  if (const auto folder = library_folder(*torch); !folder.empty())
    if (const auto path = builds.libraries / folder / builds.built.filename(); is_there(path))
      return LibraryInUse{path, torch->version, ""};
  if (!is_there(builds.sources.folder / builds.sources.whole)) return own;
  return std::nullopt;
}

}  // namespace

std::string library_folder(const TorchInUse& torch) {
  constexpr std::size_t kEnoughOfRevision = 12;
  if (torch.cuda.empty() || torch.git_version.size() < kEnoughOfRevision) return "";
  return fmt::format("torch-{}-{}-cu{}-abi{}", torch.version.substr(0, torch.version.find('+')),
                     torch.git_version.substr(0, kEnoughOfRevision), cuda_number(torch.cuda) / 1000,
                     cxx_abi(torch.folder));
}

LibraryInUse library_for(const std::optional<TorchInUse>& torch, const LibraryBuilds& builds,
                         const std::function<bool()>& cancelled) {
  if (const auto installed = library_installed(torch, builds)) return *installed;
  const auto library = compiled_library(*torch, builds.sources, cancelled);
  return {library.path, torch->version, library.problem};
}

std::optional<LibraryInUse> library_at_hand(const std::optional<TorchInUse>& torch,
                                            const LibraryBuilds& builds) {
  if (const auto installed = library_installed(torch, builds)) return installed;
  const auto kept = kept_library(*torch, builds.sources);
  if (kept.empty()) return std::nullopt;
  return LibraryInUse{kept, torch->version, ""};
}

}  // namespace peakbench::pytorch

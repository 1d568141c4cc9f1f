#include "host/torch_in_use.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <string_view>

#include "base/errors.h"
#include "base/regular_file.h"
#include "host/command.h"
#include "host/elf_file.h"

namespace peakbench::pytorch {
namespace {

namespace fs = std::filesystem;

constexpr auto kLongestSearch = std::chrono::seconds(20);

// Prints the folder of the package, without importing it. Python puts the script's folder first,
// but for -P and PYTHONSAFEPATH. Here the working folder is first, and no module may be imported
// from it; `sys` is built in.
constexpr const char* kFindTorch =
    "import sys\n"
    "is_safe = getattr(sys.flags, 'safe_path', False)\n"
    "if not is_safe: del sys.path[0]\n"
    "import importlib.util, os\n"
    "if not is_safe: sys.path.insert(0, sys.argv[1])\n"
    "spec = importlib.util.find_spec('torch')\n"
    "print(os.path.dirname(spec.origin) if spec and spec.origin else '')\n";

bool is_python(const fs::path& program) {
  static const std::regex name(R"(python(\d+(\.\d+)*)?t?)");
  return std::regex_match(program.filename().string(), name);
}

// The interpreter that a script's first line names; empty where it is no Python.
fs::path python_of_script(const fs::path& script) {
  std::ifstream file(script, std::ios::binary);
  std::string line(256, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(file.gcount()));
  line = line.substr(0, line.find('\n'));
  static const std::regex heading(R"(#!\s*(\S+)(?:\s+(\S+))?.*)");
  std::smatch parts;
  if (!std::regex_match(line, parts, heading)) return {};
  const fs::path interpreter = parts[1].str();
  if (is_python(interpreter)) return interpreter;
  if (interpreter.filename() == "env" && is_python(parts[2].str()))
    return process::find_program(parts[2].str()).value_or(fs::path());
  return {};
}

// The first argument of Python that is no option, and a path.
fs::path script_of(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word == "-m" || word == "-c" || word == "-") return {};
    if (word == "-W" || word == "-X") {
      ++i;
    } else if (!word.starts_with("-")) {
      return word;
    }
  }
  return {};
}

// What a program prints; nothing where it fails or takes too long.
std::string output_of(const std::vector<std::string>& command,
                      const std::function<bool()>& cancelled) {
  const auto said = process::ask_command(
      {.arguments = command, .patience = kLongestSearch, .cancelled = cancelled});
  return said.ok() ? said.out : std::string();
}

std::string value_of(const std::string& text, const std::string& name) {
  const std::regex line("(?:^|\n)" + name + R"((?:\s*:[^=\n]*)?\s*=\s*['"]([^'"\n]+)['"])");
  std::smatch parts;
  return std::regex_search(text, parts, line) ? parts[1].str() : std::string();
}

}  // namespace

std::optional<fs::path> torch_folder_of_python(const fs::path& python, const fs::path& scripts,
                                               const std::function<bool()>& cancelled) {
  std::string found = output_of({python.string(), "-c", kFindTorch, scripts.string()}, cancelled);
  if (found.empty()) return std::nullopt;
  while (found.ends_with('\n')) found.pop_back();
  return found;
}

fs::path torch_folder_of_command(const std::vector<std::string>& command,
                                 const std::function<bool()>& cancelled) {
  const auto program = process::find_program(command.at(0));
  if (!program) return {};
  const bool itself = is_python(*program);
  const fs::path python = itself ? *program : python_of_script(*program);
  if (python.empty()) return {};
  const fs::path script = itself ? script_of(command) : *program;
  const fs::path folder = script.empty() ? fs::path() : fs::absolute(script).parent_path();
  return torch_folder_of_python(python, folder, cancelled).value_or(fs::path());
}

TorchInUse torch_in(const fs::path& folder) {
  const auto file = (folder / "version.py").string();
  const auto text = files::read_regular_file(file, files::kMostSmallText);
  TorchInUse torch{value_of(text, "__version__"), value_of(text, "cuda"), value_of(text, "hip"),
                   value_of(text, "git_version"), folder};
  if (torch.version.empty()) throw ConfigError(file + " names no version");
  return torch;
}

std::optional<TorchInUse> torch_of_command(const std::vector<std::string>& command,
                                           const std::function<bool()>& cancelled) {
  const auto folder = torch_folder_of_command(command, cancelled);
  if (folder.empty()) return std::nullopt;
  try {
    return torch_in(folder);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

namespace {

// A file seen as text, without reading what is not looked at, for as long as the object lives.
// Empty where there is no such file, or no bytes in it.
class MappedFile {
 public:
  explicit MappedFile(const fs::path& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return;
    struct stat facts {};
    if (fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0) {
      bytes_ = static_cast<std::uint64_t>(facts.st_size);
      at_ = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
      if (at_ == MAP_FAILED) at_ = nullptr;
    }
    close(file);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (at_) munmap(at_, bytes_);
  }

  std::string_view text() const {
    return at_ ? std::string_view(static_cast<const char*>(at_), bytes_) : std::string_view();
  }

 private:
  void* at_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// "sm_75 sm_80 compute_90": the numbers of the first kind; empty of any other text.
std::vector<int> architectures_in(const std::string& list) {
  static const std::regex whole(R"((?:(?:sm|compute)_\d+[af]? ?){2,})");
  static const std::regex one(R"(sm_(\d+))");
  std::vector<int> found;
  if (!std::regex_match(list, whole)) return found;
  for (std::sregex_iterator at(list.begin(), list.end(), one), end; at != end; ++at)
    found.push_back(std::atoi((*at)[1].str().c_str()));
  return found;
}

}  // namespace

std::vector<int> architectures_of(const fs::path& torch) {
  const MappedFile library(torch / "lib/libtorch_python.so");
  const std::string_view text = library.text();
  constexpr std::string_view kStart("\0sm_", 4);
  std::vector<int> longest;
  for (auto at = text.find(kStart); at != std::string_view::npos; at = text.find(kStart, at + 1)) {
    const auto end = text.find('\0', at + 1);
    if (end == std::string_view::npos || end - at > 400) continue;
    auto found = architectures_in(std::string(text.substr(at + 1, end - at - 1)));
    if (found.size() > longest.size()) longest = std::move(found);
  }
  return longest;
}

int cuda_number(const std::string& version) {
  int major = 0, minor = 0;
  return std::sscanf(version.c_str(), "%d.%d", &major, &minor) == 2 ? major * 1000 + minor * 10 : 0;
}

std::optional<std::string> why_not_preloaded(const fs::path& program) try {
  const elf::ElfFile file(program.string());
  if (!file.is_program()) return std::nullopt;
  const bool has_interpreter = file.has_interpreter();
  const bool needs_cudart =
      std::ranges::any_of(file.needed_libraries(),
                          [](const std::string& name) { return name.starts_with("libcudart."); });
  const bool has_device_code = std::ranges::any_of(
      file.section_names(),
      [](const std::string& name) { return name == ".nv_fatbin" || name == ".nvFatBinSegment"; });
  if (!has_interpreter) {
    return fmt::format(
        "{} is linked statically: the dynamic loader has no part in starting it, so no library can "
        "be put under it. Link it dynamically, with the shared CUDA runtime (nvcc -cudart shared)",
        program.string());
  }
  if (has_device_code && !needs_cudart) {
    return fmt::format(
        "{} has the CUDA runtime linked into it (nvcc's default): its calls never leave the "
        "program, so no library can be put under them. Link it with the shared runtime (nvcc "
        "-cudart shared; in CMake, CUDA_RUNTIME_LIBRARY Shared)",
        program.string());
  }
  return std::nullopt;
} catch (const elf::ElfError&) {  // not to be understood as a program
  return std::nullopt;
}

}  // namespace peakbench::pytorch

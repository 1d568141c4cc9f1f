#include "host/torch_in_use.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <regex>

#include "errors/errors.h"
#include "files/read_file.h"
#include "host/bounded_command.h"
#include "host/program_file.h"
#include "host/torch_release.h"

namespace peakbench::emulator {
namespace {

namespace fs = std::filesystem;

constexpr auto kLongestSearch = std::chrono::seconds(20);

// Prints the folder of the package, without importing it. Python puts the script's folder first.
constexpr const char* kFindTorch =
    "import importlib.util, os, sys\n"
    "sys.path[0] = sys.argv[1]\n"
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
    return find_program(parts[2].str()).value_or(fs::path());
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
std::string output_of(const std::vector<std::string>& command) {
  const auto result = run_bounded(command, kLongestSearch, ErrorOutput::dropped);
  return result.ended_well ? result.text : std::string();
}

std::string value_of(const std::string& text, const std::string& name) {
  const std::regex line("(?:^|\n)" + name + R"((?:\s*:[^=\n]*)?\s*=\s*['"]([^'"\n]+)['"])");
  std::smatch parts;
  return std::regex_search(text, parts, line) ? parts[1].str() : std::string();
}

constexpr int kOldestMajor = 2, kOldestMinor = 6;

bool is_too_old(const std::string& version) {
  int major = 0, minor = 0;
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) != 2) return false;
  return major < kOldestMajor || (major == kOldestMajor && minor < kOldestMinor);
}

}  // namespace

std::optional<TorchInUse> torch_from_version_file(const std::string& text) {
  TorchInUse torch;
  torch.version = value_of(text, "__version__");
  torch.cuda = value_of(text, "cuda");
  torch.hip = value_of(text, "hip");
  return torch.version.empty() ? std::nullopt : std::optional(torch);
}

std::optional<TorchInUse> torch_of_command(const std::vector<std::string>& command) {
  const auto program = find_program(command.at(0));
  if (!program) return std::nullopt;
  const bool itself = is_python(*program);
  const fs::path python = itself ? *program : python_of_script(*program);
  if (python.empty()) return std::nullopt;
  const fs::path script = itself ? script_of(command) : *program;
  const fs::path folder = script.empty() ? fs::path() : fs::absolute(script).parent_path();
  std::string found = output_of({python.string(), "-c", kFindTorch, folder.string()});
  while (found.ends_with('\n')) found.pop_back();
  if (found.empty()) return std::nullopt;
  try {
    const auto file = fs::path(found) / "version.py";
    auto torch =
        torch_from_version_file(files::read_regular_file(file.string(), files::kMostSmallText));
    if (torch) torch->folder = found;
    return torch;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

std::optional<std::string> why_torch_cannot_work(const TorchInUse& torch,
                                                 const Installation& installation) {
  const std::string what = fmt::format("PyTorch {} in {}", torch.version, torch.folder.string());
  if (!torch.hip.empty())
    return fmt::format(
        "{} is built for ROCm {}, and the emulated card is a CUDA card. Install a build of PyTorch "
        "for CUDA",
        what, torch.hip);
  if (torch.cuda.empty())
    return fmt::format(
        "{} is built without CUDA, so it takes no memory of a card. Install a build of PyTorch for "
        "CUDA; no GPU and no driver is needed",
        what);
  if (is_too_old(torch.version))
    return fmt::format("{} is too old: the emulated card works with PyTorch {}.{} and later", what,
                       kOldestMajor, kOldestMinor);
  const auto& served = installation.cuda_majors;
  if (std::ranges::count(served, cuda_number(torch.cuda) / 1000) == 0)
    return fmt::format(
        "{} is built for CUDA {}; this emulated card has the libraries of CUDA {}. Install a build "
        "of PyTorch for one of these",
        what, torch.cuda, fmt::join(served, " and "));
  return std::nullopt;
}

}  // namespace peakbench::emulator

#include "host/compiler.h"

#include <cstdlib>
#include <iterator>
#include <regex>
#include <sstream>

#include "base/errors.h"
#include "base/file.h"
#include "base/regular_file.h"
#include "host/command.h"

namespace peakbench::pytorch {
namespace {

namespace fs = std::filesystem;

fs::path variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// A program whose name has spaces, or one and its first arguments; nothing where there is none.
std::vector<std::string> command_of(const std::string& text) {
  if (const auto whole = process::find_program(text)) return {whole->string()};
  std::istringstream parts(text);
  std::vector<std::string> words{std::istream_iterator<std::string>(parts), {}};
  const auto program = words.empty() ? std::nullopt : process::find_program(words.front());
  if (!program) return {};
  words.front() = program->string();
  return words;
}

}  // namespace

std::string cxx_abi(const fs::path& torch) {
  const auto file = (torch / "share/cmake/Torch/TorchConfig.cmake").string();
  if (!files::is_there(file)) return "1";
  const auto config = files::read_regular_file(file, files::kMostSmallText);
  static const std::regex flag(R"(_GLIBCXX_USE_CXX11_ABI=([01]))");
  std::smatch parts;
  return std::regex_search(config, parts, flag) ? parts[1].str() : "1";
}

fs::path cuda_headers(const fs::path& torch) {
  const fs::path beside = torch.parent_path() / "nvidia";
  for (const fs::path& folder :
       {beside / "cuda_runtime/include", beside / "cu13/include", variable("CUDA_HOME") / "include",
        fs::path("/usr/local/cuda/include")})
    if (files::is_there((folder / "cuda_runtime_api.h").string())) return folder;
  throw ConfigError(
      "no cuda_runtime_api.h next to it (nvidia-cuda-runtime has it) or in CUDA_HOME");
}

bool is_command(const std::string& text) { return !command_of(text).empty(); }

std::vector<std::string> find_compiler() {
  for (const std::string& name : {variable("CXX").string(), std::string("c++"), std::string("g++")})
    if (const auto command = command_of(name); !command.empty()) return command;
  throw ConfigError("there is no C++ compiler (c++, g++, or what CXX names)");
}

std::vector<std::string> compiler_flags(const TorchInUse& torch) {
  std::vector<std::string> flags{"-std=c++20",
                                 "-O1",
                                 "-shared",
                                 "-fPIC",
                                 "-fvisibility=hidden",
                                 "-w",
                                 "-DNDEBUG",
                                 "-D_GLIBCXX_USE_CXX11_ABI=" + cxx_abi(torch.folder),
                                 "-isystem",
                                 (torch.folder / "include").string(),
                                 "-isystem",
                                 (torch.folder / "include/torch/csrc/api/include").string()};
  if (!torch.cuda.empty())
    flags.insert(flags.end(), {"-isystem", cuda_headers(torch.folder).string()});
  return flags;
}

}  // namespace peakbench::pytorch

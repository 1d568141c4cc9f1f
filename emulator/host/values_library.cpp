#include "host/values_library.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <vector>

#include "errors/errors.h"
#include "files/file.h"
#include "files/read_file.h"
#include "host/bounded_command.h"
#include "host/program_file.h"

namespace peakbench::emulator {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwn = "values/peakbench_values.so";
constexpr const char* kSources = "values/source";
constexpr const char* kWhole = "values/whole.cpp";  // of the sources: includes the others
constexpr auto kLongestCompilation = std::chrono::seconds(300);

std::string text_of(const fs::path& file) {
  return files::read_regular_file(file.string(), files::kMostSmallText);
}

fs::path variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

fs::path cache_folder() {
  const fs::path chosen = variable("XDG_CACHE_HOME"), home = variable("HOME");
  if (chosen.is_absolute()) return chosen / "peakbench/values";
  return home.is_absolute() ? home / ".cache/peakbench/values" : fs::path();
}

fs::path compiler() {
  const fs::path chosen = variable("CXX");
  for (const std::string& name : {chosen.string(), std::string("c++"), std::string("g++")})
    if (!name.empty())
      if (const auto found = find_program(name)) return *found;
  return {};
}

// PyTorch's headers include CUDA's; pip installs them beside it.
fs::path cuda_headers(const fs::path& torch) {
  const fs::path beside = torch.parent_path() / "nvidia";
  for (const fs::path& folder :
       {beside / "cuda_runtime/include", beside / "cu13/include", variable("CUDA_HOME") / "include",
        fs::path("/usr/local/cuda/include")})
    if (files::is_there((folder / "cuda_runtime_api.h").string())) return folder;
  return {};
}

// Of libstdc++, as this PyTorch was compiled: wheels before 2.7 have the old one.
std::string cxx_abi(const fs::path& torch) {
  const auto config = text_of(torch / "share/cmake/Torch/TorchConfig.cmake");
  static const std::regex flag(R"(_GLIBCXX_USE_CXX11_ABI=([01]))");
  std::smatch parts;
  return std::regex_search(config, parts, flag) ? parts[1].str() : "1";
}

std::vector<std::string> flags(const fs::path& torch, const fs::path& cuda) {
  return {"-std=c++20",
          "-O1",
          "-shared",
          "-fPIC",
          "-fvisibility=hidden",
          "-w",
          "-DNDEBUG",
          "-D_GLIBCXX_USE_CXX11_ABI=" + cxx_abi(torch),
          "-isystem",
          (torch / "include").string(),
          "-isystem",
          (torch / "include/torch/csrc/api/include").string(),
          "-isystem",
          cuda.string()};
}

// FNV-1a: the same in every build.
std::uint64_t hashed(std::uint64_t hash, const std::string& text) {
  for (const char letter : text)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return hash;
}

std::string fingerprint(const fs::path& sources, const std::vector<std::string>& flags) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(sources))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const auto& file : files) hash = hashed(hash, text_of(file));
  for (const auto& flag : flags) hash = hashed(hash, flag);
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

// Empty where it went well.
std::string compile(const std::vector<std::string>& command, const fs::path& result) {
  const fs::path unfinished = fmt::format("{}.{}", result.string(), getpid());
  std::vector<std::string> whole = command;
  whole.insert(whole.end(), {"-o", unfinished.string()});
  const auto run = run_bounded(whole, kLongestCompilation, ErrorOutput::kept);
  std::error_code error;
  if (run.ended_well) fs::rename(unfinished, result, error);
  fs::remove(unfinished, error);
  if (run.too_long)
    return fmt::format("{} took more than {} s", command[0], kLongestCompilation.count());
  if (run.ended_well && files::is_there(result.string())) return "";
  return fmt::format("{} could not compile them: {}", command[0], first_error(run.text));
}

ValuesLibrary compiled(const TorchInUse& torch, const fs::path& sources) {
  ValuesLibrary library{{}, torch.version, ""};
  const auto fails = [&](const std::string& why) {
    library.problem = fmt::format("none are compiled for PyTorch {}: {}", torch.version, why);
    return library;
  };
  const fs::path cuda = cuda_headers(torch.folder), cache = cache_folder();
  if (cuda.empty())
    return fails("no cuda_runtime_api.h beside it (nvidia-cuda-runtime has it) or in CUDA_HOME");
  if (cache.empty()) return fails("neither XDG_CACHE_HOME nor HOME names a folder to keep them in");
  const auto used = flags(torch.folder, cuda);
  library.path = cache / file_name(torch.version, fingerprint(sources, used));
  if (files::is_there(library.path.string())) return library;
  const fs::path program = compiler();
  if (program.empty()) return fails("there is no C++ compiler (c++, g++, or what CXX names)");
  std::error_code error;
  fs::create_directories(cache, error);
  if (error) return fails(fmt::format("{}: {}", cache.string(), error.message()));
  std::fprintf(stderr,
               "peakbench: compiling the values library for PyTorch %s (once, about 30 s)\n",
               torch.version.c_str());
  std::vector<std::string> command{program.string()};
  command.insert(command.end(), used.begin(), used.end());
  command.insert(command.end(), {"-I", sources.string(), (sources / kWhole).string()});
  // Python opens PyTorch's libraries for itself alone, so what uses them names them.
  command.insert(command.end(), {"-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined"});
  for (const char* name : {"libc10.so", "libc10_cuda.so", "libtorch_cpu.so"})
    command.push_back((torch.folder / "lib" / name).string());
  const auto problem = compile(command, library.path);
  return problem.empty() ? library : fails(problem);
}

}  // namespace

ValuesLibrary values_library_for(const std::optional<TorchInUse>& torch,
                                 const Installation& installation) {
  const fs::path sources = installation.folder / kSources;
  if (!torch || torch->version == installation.libtorch_version ||
      !files::is_there((sources / kWhole).string()))
    return {installation.folder / kOwn, installation.libtorch_version, ""};
  try {
    return compiled(*torch, sources);
  } catch (const std::exception& error) {  // files that cannot be read
    return {{}, torch->version, error.what()};
  }
}

}  // namespace peakbench::emulator

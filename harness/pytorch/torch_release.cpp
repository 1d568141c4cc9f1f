#include "pytorch/torch_release.h"

#include <cstdio>
#include <cstdlib>
#include <regex>
#include <string_view>

#include "pytorch/mapped_file.h"

namespace peakbench::pytorch {
namespace {

namespace fs = std::filesystem;

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

}  // namespace peakbench::pytorch

#include "host/other_makers.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "text/nearest.h"

namespace peakbench::emulator {
namespace {

struct Maker {
  const char* what;
  // How names begin; # is a digit. RX 5090 is nobody's, and probably meant as RTX 5090.
  std::vector<std::string_view> names;
};

const std::vector<Maker>& makers() {
  static const std::vector<Maker> kMakers{
      {"is one of AMD's, which run PyTorch's ROCm build",
       {"amd", "instinct", "radeon", "mi#", "rx5#00", "rx6#", "rx7#", "rx9#", "gfx#", "vega",
        "w6800", "w7#00"}},
      {"is one of Intel's, which run PyTorch's XPU build",
       {"intel", "arc", "max1###", "a310", "a380", "a580", "a750", "a770", "b50", "b60", "b570",
        "b580"}},
      {"is Intel's Gaudi, which runs PyTorch through Intel's own plugin", {"gaudi", "hpu"}},
      {"is one of Google's TPUs, which run PyTorch through XLA",
       {"tpu", "v5e", "v5p", "v6e", "trillium", "ironwood"}},
  };
  return kMakers;
}

bool begins_as(std::string_view name, std::string_view pattern) {
  if (name.size() < pattern.size()) return false;
  return std::equal(pattern.begin(), pattern.end(), name.begin(), [](char wanted, char is) {
    return wanted == '#' ? std::isdigit(static_cast<unsigned char>(is)) != 0 : wanted == is;
  });
}

}  // namespace

std::string other_maker(std::string_view name) {
  const std::string bare = bare_name(name);
  for (const auto& maker : makers())
    for (const auto& pattern : maker.names)
      if (begins_as(bare, pattern)) return maker.what;
  return "";
}

}  // namespace peakbench::emulator

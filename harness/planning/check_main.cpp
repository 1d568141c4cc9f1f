// peakbench-check-manifest PLUGIN.json: says everything that is wrong with a plugin's manifest, a
// line each, as compilers do. peakbench_add_plugin runs it in every build of a plugin.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "base/errors.h"
#include "base/printable.h"
#include "base/regular_file.h"
#include "planning/read_manifest.h"

int main(int argc, char** argv) {
  const std::string_view first = argc == 2 ? argv[1] : "";
  const bool help = first == "--help" || first == "-h";
  if (argc != 2 || help) {
    fmt::print(help ? stdout : stderr,
               "usage: peakbench-check-manifest PLUGIN.json\nExit codes: 0 nothing is wrong; 1 the "
               "manifest is wrong; 2 it cannot be read.\n");
    return help ? 0 : 2;
  }
  std::string text;
  try {
    text = peakbench::files::read_regular_file(argv[1], peakbench::files::kMostSmallText);
  } catch (const peakbench::ConfigError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  const auto problems = peakbench::planning::problems_in(text);
  for (const auto& problem : problems) {
    fmt::print(stderr, "{}: error: {}\n", argv[1], peakbench::printable(problem));
  }
  return problems.empty() ? 0 : 1;
}

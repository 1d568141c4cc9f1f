// `peakbench new`: a plugin of one's own to begin with, which builds and whose tests pass.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/file.h"
#include "base/regular_file.h"
#include "cli/commands.h"
#include "cli/option_values.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNewFooter = R"(Examples:
  peakbench new strategy sign-sgd
  peakbench new model residual-mlp --out plugins/residual-mlp
The folder has the source, its manifest, CMakeLists.txt, tests, a workflow for GitHub, and a README.md with
the commands that build and run the plugin. See docs/how-to/plugins.md and docs/reference/models.md.
Exit codes: 0 done; 2 an invalid name, or a folder that is not empty.)";

struct NewArguments {
  std::string kind, name, out;
};

// Ids of plugins: docs/how-to/plugins.md.
void check_name(const std::string& name) {
  const auto is_ours = [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  constexpr std::size_t kLongest = 60;
  if (name.empty() || name.size() > kLongest ||
      std::islower(static_cast<unsigned char>(name[0])) == 0 || !std::ranges::all_of(name, is_ours))
    throw ConfigError(fmt::format(
        "\"{}\" is no name for a plugin: lower-case letters, digits, `-`, `_` and `.`, a letter "
        "first, at most {} characters, like my-sgd",
        name, kLongest));
}

// What CMake and a linker call it. Throws ConfigError where CMake has a target of that name.
std::string target_of(const std::string& name) {
  std::string target = name;
  std::ranges::replace_if(
      target, [](char c) { return c == '-' || c == '.'; }, '_');
  // CMake's policy CMP0037, and what its generators add.
  constexpr std::string_view kTaken =
      " all clean depend edit_cache help install install_local install_strip package "
      "list_install_components package_source preinstall rebuild_cache test ";
  if (kTaken.find(" " + target + " ") != std::string_view::npos)
    throw ConfigError(fmt::format(
        "\"{}\" is a target of CMake's own: choose another name, like my-{}", name, name));
  return target;
}

std::string title_of(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == '_'; }, ' ');
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name;
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string filled(std::string text, const Pairs& replacements) {
  for (const auto& [word, with] : replacements)
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + with.size()))
      text.replace(at, word.size(), with);
  return text;
}

int make_plugin(World& world, const NewArguments& arguments) {
  check_name(arguments.name);
  const auto folder = arguments.out.empty() ? arguments.name : arguments.out;
  if (!files::holds_nothing(folder))
    throw ConfigError(fmt::format(
        "{} exists and is not empty; nothing was written. Choose another folder with --out",
        folder));
  const fs::path templates = fs::path(world.places.templates) / "new";
  const auto target = target_of(arguments.name);
  const Pairs replacements{
      {"@ID@", arguments.name}, {"@TARGET@", target}, {"@TITLE@", title_of(arguments.name)}};
  const std::string& kind = arguments.kind;
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  // Where each comes from, and what it is called there.
  const Pairs parts{{kind + "/CMakeLists.txt", "CMakeLists.txt"},
                    {kind + "/plugin.json", "plugin.json"},
                    {kind + "/source.txt", target + ".cpp"},
                    {kind + "/README.md", "README.md"},
                    {"both/gitignore", ".gitignore"},
                    {"both/workflow.yml", ".github/workflows/plugin.yml"}};
  for (const auto& [from, to] : parts) {
    const auto path = fs::path(folder) / to;
    files::make_folder(path.parent_path().string());
    files::write_file_atomically(
        path.string(),
        filled(files::read_regular_file((templates / from).string(), kMostBytes), replacements));
  }
  world.out << fmt::format(
      "{0} is in {1}: {2}.cpp is yours to change.\n\n"
      "  cd {1}\n"
      "  cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release "
      "-DPeakbench_DIR=\"$(peakbench --cmake-dir)\"\n"
      "  cmake --build build\n"
      "  peakbench run --plugins build --model {3} --strategy baseline --strategy {4} --device "
      "emulated:h100-80gb\n",
      arguments.name, folder, target, kind == "model" ? arguments.name : "vit-b-16",
      kind == "model" ? "checkpointing" : arguments.name);
  return kDone;
}

}  // namespace

Command add_new(CLI::App& app, World& world) {
  auto* command =
      subcommand(app, "new", "Create a strategy or model plugin to start from", kNewFooter);
  const auto arguments = std::make_shared<NewArguments>();
  add_value(*command, "kind", arguments->kind, "Kind of the plugin", "strategy|model")
      ->required()
      ->check(one_of({"strategy", "model"}));
  add_value(*command, "name", arguments->name,
            "Id of the strategy or model on the command line: my-sgd", "NAME")
      ->required();
  add_value(*command, "-o,--out", arguments->out, "Folder (default: NAME)", "DIR");
  return [&world, arguments] { return make_plugin(world, *arguments); };
}

}  // namespace peakbench::cli

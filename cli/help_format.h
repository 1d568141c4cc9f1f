#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace peakbench::cli {

inline constexpr int kHelpColumns = 80;  // of `--help`, however long its texts are

// Text below a command's options: paragraphs, and lines of code, which are indented by two columns
// in the source. A line that begins with "Exit code" begins a paragraph; a line that ends with a
// colon ends one.
struct FooterPart {
  bool code = false;
  std::string text;  // a paragraph in one line; or a command, broken with backslashes to fit
};
std::vector<FooterPart> footer_parts(const std::string& footer, int columns = kHelpColumns);

// A command's parts, without those that are hidden: they have no group.
std::vector<const CLI::App*> shown_commands(const CLI::App& app);

class HelpFormatter final : public CLI::Formatter {
 public:
  // `All`: the help of every command, one after the other.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_footer(const CLI::App* app) const override;

  // "-f,--format NAME[,NAME]", as the help has it.
  std::string heading_of(const CLI::Option& option) const;
};

// The manual page of all commands, in the language of man(7); the same each time. `version`:
// "0.1.0".
std::string man_page(const CLI::App& app, const std::string& version);

}  // namespace peakbench::cli

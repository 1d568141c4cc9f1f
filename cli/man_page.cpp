#include "cli/man_page.h"

#include <fmt/format.h>

#include <sstream>

#include "cli/help_format.h"

namespace peakbench::cli {
namespace {

// man sets code in by seven columns.
constexpr int kCodeColumns = kHelpColumns - 8;

// What man(7) would take for its own: backslashes, hyphens, and dots and quotes that begin a line.
std::string plain(const std::string& text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    line_begins = c == '\n';
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '`' || c == '\'')
      out += c == '`' ? "\\(ga" : "\\(aq";
    else
      out += c;
  }
  return out;
}

void add_option(const HelpFormatter& formatter, const CLI::Option& option, std::string& page) {
  page += fmt::format(".TP\n.B {}\n{}\n", plain(formatter.heading_of(option)),
                      plain(option.get_description()));
}

void add_footer(const CLI::App& command, std::string& page) {
  bool in_code = false;
  for (const auto& [code, text] : footer_parts(command.get_footer(), kCodeColumns)) {
    if (code != in_code) page += code ? ".PP\n.EX\n" : ".EE\n";
    in_code = code;
    page += code ? plain(text) + "\n" : ".PP\n" + plain(text) + "\n";
  }
  if (in_code) page += ".EE\n";
}

std::string usage_of(const HelpFormatter& formatter, const CLI::App& command,
                     const std::string& name) {
  auto usage = formatter.make_usage(&command, name);
  usage.erase(0, usage.find(' ') + 1);  // "Usage: "
  usage.erase(usage.find_last_not_of('\n') + 1);
  return usage;
}

void add_command(const HelpFormatter& formatter, const CLI::App& command, const std::string& name,
                 std::string& page) {
  page += fmt::format(".SS {}\n{}.\n.PP\n.B {}\n", plain(name), plain(command.get_description()),
                      plain(usage_of(formatter, command, name)));
  for (const auto* option : command.get_options())
    if (option != command.get_help_ptr() && option != command.get_help_all_ptr() &&
        !option->get_group().empty())
      add_option(formatter, *option, page);
  add_footer(command, page);
  for (const auto* part : shown_commands(command))
    add_command(formatter, *part, name + " " + part->get_name(), page);
}

}  // namespace

std::string man_page(const CLI::App& app, const std::string& version) {
  const HelpFormatter formatter;
  const auto& name = app.get_name();
  auto page = fmt::format(
      ".TH PEAKBENCH 1 \"\" \"Peakbench {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH "
      "SYNOPSIS\n.B {}\n.SH DESCRIPTION\n",
      version, plain(name), plain(app.get_description()), plain(usage_of(formatter, app, name)));
  add_footer(app, page);
  page += ".SH OPTIONS\n";
  for (const auto* option : app.get_options()) add_option(formatter, *option, page);
  page += ".SH COMMANDS\n";
  for (const auto* command : shown_commands(app))
    add_command(formatter, *command, name + " " + command->get_name(), page);
  return page;
}

}  // namespace peakbench::cli

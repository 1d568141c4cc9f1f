#include "cli/help_format.h"

#include <fmt/format.h>

#include <sstream>
#include <utility>

#include "base/columns.h"

namespace peakbench::cli {
namespace {

constexpr int kTextColumn = 30;  // where what an option is for begins
constexpr std::size_t kCodeIndent = 2, kContinued = 6;

std::string spaces(std::size_t count) { return std::string(count, ' '); }

// `name` with what it is beside it, or below where there is no room.
std::string entry(const std::string& name, const std::string& what) {
  auto head = spaces(2) + name;
  if (what.empty()) return head + "\n";
  if (display_width(head) + 2 > kTextColumn)
    return head + "\n" + hanging(spaces(kTextColumn), what, kHelpColumns);
  head += spaces(static_cast<std::size_t>(kTextColumn - display_width(head)));
  return hanging(head, what, kHelpColumns);
}

// Words of a shell, quotes left as they are; an option together with its value.
std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  const auto end_word = [&] {
    if (word.empty()) return;
    const bool value = !words.empty() && words.back().rfind("--", 0) == 0 && word[0] != '-' &&
                       words.back().find(' ') == std::string::npos;
    if (value)
      words.back() += " " + word;
    else
      words.push_back(word);
    word.clear();
  };
  for (const char c : command) {
    if (quote == 0 && c == ' ') {
      end_word();
      continue;
    }
    if (c == '\'' || c == '"') quote = quote == 0 ? c : quote == c ? '\0' : quote;
    word += c;
  }
  end_word();
  return words;
}

// A command that is too long for a line goes on in others, as a shell takes it.
std::string broken(const std::string& command, int columns) {
  if (display_width(command) <= columns) return command;
  std::string out, line = spaces(kCodeIndent);
  bool first = true;
  for (const auto& word : words_of(command)) {
    const bool fits = display_width(line) + 1 + display_width(word) + 2 <= columns;
    if (!first && !fits) {
      out += line + " \\\n";
      line = spaces(kContinued) + word;
    } else {
      line += (first ? "" : " ") + word;
    }
    first = false;
  }
  return out + line;
}

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

std::vector<FooterPart> footer_parts(const std::string& footer, int columns) {
  std::vector<FooterPart> parts;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) parts.push_back({false, std::exchange(paragraph, {})});
  };
  std::istringstream lines(footer);
  for (std::string line; std::getline(lines, line);) {
    const bool code = line.rfind(spaces(kCodeIndent), 0) == 0;
    if (line.empty() || code || line.rfind("Exit code", 0) == 0) end_paragraph();
    if (code)
      parts.push_back({true, broken(line, columns)});
    else if (!line.empty())
      paragraph += (paragraph.empty() ? "" : " ") + line;
    if (!paragraph.empty() && paragraph.back() == ':') end_paragraph();
  }
  end_paragraph();
  return parts;
}

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
}

std::string HelpFormatter::heading_of(const CLI::Option& option) const {
  return make_option_name(&option, option.get_positional()) + make_option_opts(&option);
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  auto out = CLI::Formatter::make_help(app, name, CLI::AppFormatMode::Normal);
  if (mode != CLI::AppFormatMode::All) return out;
  for (const auto* command : shown_commands(*app))
    out += "\n" + make_help(command, name + " " + command->get_name(), mode);
  return out;
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrapped(app->get_description(), kHelpColumns, 0);
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  if (app->get_parent() != nullptr) return CLI::Formatter::make_usage(app, name);
  return "Usage: peakbench [OPTIONS] train.py [ARGS]   run your script on an emulated card\n"
         "       peakbench COMMAND [OPTIONS]\n";
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return entry(command->get_name(), command->get_description());
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return entry(make_option_name(option, is_positional) + make_option_opts(option),
               make_option_desc(option));
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  std::string out;
  bool after_code = false;
  for (const auto& [code, text] : footer_parts(app->get_footer())) {
    if (after_code && !code) out += "\n";
    out += code ? text + "\n" : wrapped(text, kHelpColumns, 0);
    after_code = code;
  }
  return out;
}

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

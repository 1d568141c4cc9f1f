#include "reports/render/text.h"

#include <fmt/format.h>

#include <cctype>
#include <string_view>

#include "result/axes.h"

namespace peakbench::reports {
namespace {

std::string quoted(const std::string& argument) {
  static constexpr std::string_view kSafe = "_-./=+,:@%";
  bool safe = !argument.empty(), plain = true;
  for (const unsigned char c : argument) {
    safe = safe && (std::isalnum(c) || kSafe.find(static_cast<char>(c)) != std::string_view::npos);
    plain = plain && c >= 0x20 && c != 0x7F;
  }
  if (safe) return argument;
  static constexpr char kHex[] = "0123456789abcdef";
  std::string result = plain ? "'" : "$'";
  for (const unsigned char c : argument) {
    if (plain) {
      result += c == '\'' ? std::string("'\\''") : std::string(1, static_cast<char>(c));
    } else if (c < 0x20 || c == 0x7F) {
      result += {'\\', 'x', kHex[c >> 4U], kHex[c & 15U]};
    } else {
      if (c == '\'' || c == '\\') result += '\\';
      result += static_cast<char>(c);
    }
  }
  return result + "'";
}

// `:tada:`; the colons of `aten::add` and of `emulated:h100-80gb` begin none.
bool begins_emoji_code(const std::string& text, std::size_t colon) {
  static constexpr std::string_view kInCode = "_+-";
  auto at = colon + 1;
  while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) ||
                              kInCode.find(text[at]) != std::string_view::npos))
    ++at;
  return at > colon + 1 && at < text.size() && text[at] == ':';
}

// Not even as &#...; (XML 1.0, 2.2).
bool is_forbidden_in_xml(char32_t c) {
  return (c < 0x20 && c != '\n' && c != '\t' && c != '\r') || c == 0xFFFE || c == 0xFFFF;
}

}  // namespace

std::string escape_html(const std::string& text) {
  std::string result;
  for_each_shown(text, [&](std::string_view character) {
    if (is_forbidden_in_xml(code_point(character))) character = kReplacement;
    switch (character[0]) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += character;
    }
  });
  return result;
}

// Marks are escaped where they could mean something, so that the file reads well as it is, too.
std::string escape_markdown(const std::string& text) {
  static constexpr std::string_view kMarks = "\\`*[]|~$", kAtStart = "#+-=";
  const auto at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool in_word = i > 0 && std::isalnum(at(i - 1)) && std::isalnum(at(i + 1));
    const bool starts_block = i == 0 && kAtStart.find(c) != std::string_view::npos &&
                              (at(1) == ' ' || at(1) == 0 || at(1) == at(0));
    const bool escaped = kMarks.find(c) != std::string_view::npos || (c == '_' && !in_word) ||
                         starts_block || (c == '#' && std::isdigit(at(i + 1)));
    if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '@') {
      result += "&#64;";  // never a mention of a user
    } else if (c == ':' && (text.compare(i, 3, "://") == 0 || begins_emoji_code(text, i))) {
      result += "&#58;";  // never an emoji code, never an address that links itself
    } else {
      if (escaped) result += '\\';
      result += c;
    }
  }
  return result;
}

std::string shell_quoted(const std::vector<std::string>& arguments) {
  std::string line;
  for (const std::string& argument : arguments)
    line += (line.empty() ? "" : " ") + quoted(argument);
  return line;
}

std::string web_address(const std::string& url) {
  const bool web = url.rfind("https://", 0) == 0 || url.rfind("http://", 0) == 0;
  if (!web) return "";
  static constexpr std::string_view kAllowed = "-._~:/?#@!$&*+,;=%";
  for (const unsigned char c : url) {
    if (!std::isalnum(c) && kAllowed.find(static_cast<char>(c)) == std::string_view::npos)
      return "";
  }
  return url;
}

std::string file_stem(const std::string& text) {
  std::string stem;
  for (const unsigned char c : text) {
    if (std::isalnum(c)) {
      stem += static_cast<char>(std::tolower(c));
    } else if (!stem.empty() && stem.back() != '-') {
      stem += '-';
    }
    if (stem.size() == 60) break;
  }
  while (!stem.empty() && stem.back() == '-') stem.pop_back();
  return stem.empty() ? "x" : stem;
}

std::string stack_text(const result::Setting& setting) {
  return result::stack_text(setting.strategies);
}

std::string build_text(const result::Setting& setting) {
  std::string text;
  for (const auto& row : result::axes())
    if (const auto words = result::in_words(row.is_row ? row.in_line : "", row.text(setting));
        !words.empty())
      text += (text.empty() ? "" : ", ") + words;
  return text;
}

std::string name_alone(const result::Setting& setting) {
  return facts_of(setting.kind).has_stack ? stack_text(setting) : selection_text(setting.model);
}

std::string row_name(const result::Setting& setting) {
  const auto build = build_text(setting);
  return build.empty() ? name_alone(setting) : fmt::format("{} ({})", name_alone(setting), build);
}

}  // namespace peakbench::reports

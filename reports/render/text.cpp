#include "reports/render/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "records/axes.h"

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
  using Entity = std::pair<std::string_view, std::string_view>;
  static constexpr std::array kEntities{Entity{"&", "&amp;"}, Entity{"<", "&lt;"},
                                        Entity{">", "&gt;"}, Entity{"\"", "&quot;"},
                                        Entity{"'", "&#39;"}};
  std::string result;
  for_each_shown(text, [&](std::string_view character) {
    if (is_forbidden_in_xml(code_point(character))) character = kReplacement;
    const auto* entity = std::ranges::find(kEntities, character, &Entity::first);
    result += entity == kEntities.end() ? character : entity->second;
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

std::string stack_text(const records::Setting& setting) {
  return records::stack_text(setting.strategies);
}

std::string build_text(const records::Setting& setting) {
  std::string text;
  for (const auto& row : records::axes())
    if (const auto words = records::in_words(row.is_row ? row.in_line : "", row.text(setting));
        !words.empty())
      text += (text.empty() ? "" : ", ") + words;
  return text;
}

std::string name_alone(const records::Setting& setting) {
  return facts_of(setting.kind).has_stack ? stack_text(setting) : selection_text(setting.model);
}

std::string row_name(const records::Setting& setting) {
  const auto build = build_text(setting);
  return build.empty() ? name_alone(setting) : fmt::format("{} ({})", name_alone(setting), build);
}

namespace {

constexpr std::size_t kLongWord = 20, kLeastRun = 4;  // characters
constexpr std::string_view kBreak = "<wbr>", kSpaces = " \t\r\n", kNumberSigns = ".,",
                           kSeparators = "/\\_-.,=:+@|;)]}";
// Of these nothing wraps, or it is no text.
constexpr std::string_view kWhole[] = {"script", "style", "svg", "title", "textarea", "select"};

bool is_in(std::string_view set, char c) { return set.find(c) != std::string_view::npos; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_small(char c) { return c >= 'a' && c <= 'z'; }
bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

// The first character: an entity, or what UTF-8 writes in several bytes.
std::string_view first_character(std::string_view text) {
  constexpr std::size_t kLongestEntity = 10;
  std::size_t size = 1;
  if (const auto end = text.substr(0, kLongestEntity).find(';');
      text[0] == '&' && end != std::string_view::npos)
    size = end + 1;
  else
    while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) ++size;
  return text.substr(0, size);
}

std::size_t length(std::string_view word) {
  std::size_t count = 0;
  for (; !word.empty(); word.remove_prefix(first_character(word).size())) ++count;
  return count;
}

bool separates(std::string_view character) {
  return character.size() == 1 && is_in(kSeparators, character[0]);
}

// Numbers stay whole, and separators in a row, too; `ScaledDotProduct` is three words.
bool may_break(std::string_view before, std::string_view after) {
  if (is_small(before[0]) && is_capital(after[0])) return true;
  if (!separates(before) || separates(first_character(after))) return false;
  return !(is_in(kNumberSigns, before[0]) && is_digit(after[0]));
}

void add_word(std::string_view word, std::string& out) {
  if (word.size() <= kLongWord || length(word) <= kLongWord) {
    out += word;
    return;
  }
  std::size_t piece = 0, run = 0;  // since the last break; and since the last separator, too
  std::string_view before;
  while (!word.empty()) {
    const auto character = first_character(word);
    out += character;
    word.remove_prefix(character.size());
    run = separates(character) && !separates(before) ? 0 : run + 1;
    before = character;
    if (++piece < kLeastRun || word.empty()) continue;
    if (run < kLongWord && !may_break(character, word)) continue;
    out += kBreak;
    piece = run = 0;
  }
}

void add_text(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const auto word = std::min(text.find_first_of(kSpaces), text.size());
    add_word(text.substr(0, word), out);
    const auto next = std::min(text.find_first_not_of(kSpaces, word), text.size());
    out += text.substr(word, next - word);
    text.remove_prefix(next);
  }
}

// How long the tag at the beginning is; a `>` in quotes does not end it.
std::size_t tag_length(std::string_view html) {
  char quote = 0;
  for (std::size_t i = 1; i < html.size(); ++i) {
    if (quote != 0)
      quote = html[i] == quote ? '\0' : quote;
    else if (html[i] == '"' || html[i] == '\'')
      quote = html[i];
    else if (html[i] == '>')
      return i + 1;
  }
  return html.size();
}

bool is_tag(std::string_view html, std::string_view mark, std::string_view name) {
  if (!html.starts_with(mark) || html.substr(mark.size(), name.size()) != name) return false;
  const auto rest = html.substr(std::min(html.size(), mark.size() + name.size()));
  return rest.empty() || is_in(" >\n\t/", rest[0]);
}

// How long the element is that the tag at the beginning opens, with those of its name in it.
std::size_t element_length(std::string_view html, std::string_view name) {
  int depth = 0;
  const bool nests = name == "svg";
  for (std::size_t at = 0; at < html.size(); at = std::min(html.find('<', at + 1), html.size())) {
    const auto here = html.substr(at);
    if (is_tag(here, "<", name) && (nests || at == 0)) ++depth;
    if (is_tag(here, "</", name) && --depth == 0) return at + tag_length(here);
  }
  return html.size();
}

std::size_t markup_length(std::string_view html) {
  for (const auto name : kWhole)
    if (is_tag(html, "<", name)) return element_length(html, name);
  return tag_length(html);
}

}  // namespace

std::string with_soft_breaks(const std::string& html) {
  std::string out;
  out.reserve(html.size() + html.size() / 50);
  std::string_view rest = html;
  while (!rest.empty()) {
    const auto text = std::min(rest.find('<'), rest.size());
    add_text(rest.substr(0, text), out);
    rest.remove_prefix(text);
    if (rest.empty()) break;
    const auto markup = markup_length(rest);
    out += rest.substr(0, markup);
    rest.remove_prefix(markup);
  }
  return out;
}

}  // namespace peakbench::reports

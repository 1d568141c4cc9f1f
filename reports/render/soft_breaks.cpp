#include "reports/render/soft_breaks.h"

#include <algorithm>
#include <string_view>

namespace peakbench::reports {
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

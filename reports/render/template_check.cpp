#include "reports/render/template_check.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "reports/render/template.h"

namespace peakbench::reports {
namespace {

constexpr const char* kFieldsPage = "docs/reference lists the fields";

// The engine that renders needs stack for each section in a section. Ours have five.
constexpr std::size_t kMostSections = 50, kMostFilesOpen = 50, kMostIncludes = 10'000;
constexpr std::size_t kMostText = std::size_t{16} << 20, kMostErrors = 50, kLongestName = 100;

struct Tag {
  char kind = ' ';  // ' ' text, '{' unescaped, # ^ / > ! =
  std::string name;
  std::size_t begin = 0, end = 0, line = 1;
};

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

class Checker {
 public:
  Checker(const LoadTemplate& load, std::string folder) : load_(load), folder_(std::move(folder)) {}

  // Checks a file in the scopes at hand and appends its text, partials in place.
  void check_file(const std::string& name) {
    const TemplateFile file = load_(name);
    files_.push_back({file.path});
    const std::size_t open_before = sections_.size();
    std::size_t at = 0;
    while (!stopped_) {
      const auto tag = next_tag(file.text, at);
      if (!tag) break;
      check_tag(*tag, file.text, at);
    }
    result_.text += file.text.substr(std::min(at, file.text.size()));
    while (sections_.size() > open_before) {
      error(sections_.back().line, "section {{#" + sections_.back().name + "}} is not closed");
      pop();
    }
    files_.pop_back();
  }

  void push(const Field* scope) { scopes_.push_back(scope); }
  CheckedTemplate result() && { return std::move(result_); }

 private:
  struct Section {
    std::string name;
    std::size_t line;
    bool scoped;                      // pushed a scope
    std::optional<std::string> calc;  // the expression so far, every field a 1
  };

  // A file that is being read, and how far its lines are counted.
  struct OpenFile {
    std::string path;
    std::size_t counted = 0, line = 1;
  };

  // After the last one nothing more is looked at.
  void error(std::size_t line, const std::string& what) {
    if (stopped_) return;
    result_.errors.push_back(files_.back().path + ":" + std::to_string(line) + ": " + what);
    stopped_ = result_.errors.size() == kMostErrors;
  }

  void stop(std::size_t line, const std::string& what) {
    error(line, what);
    stopped_ = true;
  }

  std::size_t line_at(const std::string& text, std::size_t at) {
    OpenFile& file = files_.back();
    const auto place = [&](std::size_t i) { return text.begin() + static_cast<std::ptrdiff_t>(i); };
    file.line += static_cast<std::size_t>(std::count(place(file.counted), place(at), '\n'));
    file.counted = at;
    return file.line;
  }

  std::optional<Tag> next_tag(const std::string& text, std::size_t from) {
    Tag tag;
    tag.begin = text.find("{{", from);
    if (tag.begin == std::string::npos) return std::nullopt;
    tag.line = line_at(text, tag.begin);
    const bool triple = text.compare(tag.begin, 3, "{{{") == 0;
    const std::string closing = triple ? "}}}" : "}}";
    const std::size_t close = text.find(closing, tag.begin);
    if (close == std::string::npos) {
      error(tag.line, "a tag that is not closed by " + closing);
      return std::nullopt;
    }
    tag.end = close + closing.size();
    const std::size_t skip = triple ? 3 : 2;
    std::string inside = trimmed(text.substr(tag.begin + skip, close - tag.begin - skip));
    if (triple) tag.kind = '{';
    if (!triple && !inside.empty() && std::string("#^/>!&=").find(inside[0]) != std::string::npos) {
      tag.kind = inside[0] == '&' ? '{' : inside[0];
      inside = trimmed(inside.substr(1));
    }
    tag.name = inside;
    return tag;
  }

  // Handles the tag and moves `at` behind it; the text before it and its own text are kept, a
  // partial replaces its tag. A tag alone on its line takes the whole line with it, as Mustache's
  // specification says.
  void check_tag(const Tag& tag, const std::string& text, std::size_t& at) {
    const bool alone = tag.kind != ' ' && tag.kind != '{' && is_alone(tag, text);
    const std::size_t begin = alone ? text.rfind('\n', tag.begin) + 1 : tag.begin;
    const std::string before = text.substr(at, std::max(at, begin) - at);
    if (in_calc())
      *sections_.back().calc += before + (tag.kind == ' ' || tag.kind == '{' ? "1" : "");
    result_.text += before;
    if (result_.text.size() > kMostText) return stop(tag.line, "the template is too large");
    at = alone ? std::min(tag.end + 1, text.size()) : tag.end;
    switch (tag.kind) {
      case '!':
        return;
      case '=':
        return error(tag.line, "set-delimiter tags are not supported");
      case '>':
        return include(tag);
      case '#':
      case '^':
        open(tag);
        break;
      case '/':
        close(tag);
        break;
      default:
        check_value(tag);
    }
    result_.text += text.substr(tag.begin, tag.end - tag.begin);
  }

  static bool is_alone(const Tag& tag, const std::string& text) {
    std::size_t before = tag.begin;
    while (before > 0 && (text[before - 1] == ' ' || text[before - 1] == '\t')) --before;
    const bool starts = before == 0 || text[before - 1] == '\n';
    return starts && (tag.end == text.size() || text[tag.end] == '\n');
  }

  bool in_calc() const { return !sections_.empty() && sections_.back().calc; }

  void include(const Tag& tag) {
    const bool has_extension = tag.name.find('.') != std::string::npos;
    const std::string name = folder_ + "/" + tag.name + (has_extension ? "" : ".mustache");
    try {
      const std::string path = load_(name).path;
      const auto same = [&](const OpenFile& file) { return file.path == path; };
      if (std::ranges::any_of(files_, same)) {
        return error(tag.line, "{{> " + tag.name + "}} includes itself");
      }
      if (files_.size() == kMostFilesOpen || ++includes_ > kMostIncludes) {
        return stop(tag.line, "{{> " + tag.name + "}}: too many templates in templates");
      }
      check_file(name);
    } catch (const std::out_of_range&) {
      return error(tag.line, "{{> " + tag.name + "}}: no template " + name);
    }
  }

  void open(const Tag& tag) {
    if (sections_.size() == kMostSections) {
      return stop(tag.line, "more than " + std::to_string(kMostSections) + " sections in sections");
    }
    if (tag.name == "calc") {
      sections_.push_back({tag.name, tag.line, false,
                           tag.kind == '#' ? std::optional<std::string>("") : std::nullopt});
      return;
    }
    const Field* field = resolve(tag);
    const bool scoped = tag.kind == '#' && field && field->kind != FieldKind::kFlag;
    const bool inside = std::ranges::find(scopes_, field) != scopes_.end();
    if (scoped && inside && field->kind == FieldKind::kList) {
      error(tag.line, "{{#" + tag.name + "}} is inside itself: a list in the same list");
    }
    if (scoped) scopes_.push_back(field);
    sections_.push_back({tag.name, tag.line, scoped, std::nullopt});
  }

  void close(const Tag& tag) {
    if (sections_.empty()) return error(tag.line, "{{/" + tag.name + "}} closes nothing");
    if (sections_.back().name != tag.name) {
      error(tag.line, "{{/" + tag.name + "}} where {{/" + sections_.back().name +
                          "}} is open since line " + std::to_string(sections_.back().line));
    } else if (in_calc()) {
      try {
        evaluate(*sections_.back().calc);
      } catch (const std::invalid_argument& wrong) {
        error(sections_.back().line, std::string("{{#calc}}: ") + wrong.what());
      }
    }
    pop();
  }

  void pop() {
    if (sections_.back().scoped) scopes_.pop_back();
    sections_.pop_back();
  }

  void check_value(const Tag& tag) {
    if (tag.name == ".") {
      if (!is_text(*scopes_.back()))
        error(tag.line, "{{.}} is the current text, and there is no text here");
      return;
    }
    const Field* field = resolve(tag);
    if (!field || field->kind == FieldKind::kText) return;
    const std::string what = field->kind == FieldKind::kFlag   ? "a flag"
                             : field->kind == FieldKind::kList ? "a list"
                                                               : "an object";
    error(tag.line,
          "`" + tag.name + "` is " + what + ": use {{#" + tag.name + "}}...{{/" + tag.name + "}}");
  }

  static bool is_text(const Field& scope) {
    return scope.kind == FieldKind::kText ||
           (scope.kind == FieldKind::kList && scope.fields.empty());
  }

  const Field* resolve(const Tag& tag) {
    const std::size_t dot = tag.name.find('.');
    const std::string first = tag.name.substr(0, dot);
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const Field* field = (*scope)->find(first);
      if (!field) continue;
      return dot == std::string::npos ? field : resolve_rest(tag, field, tag.name.substr(dot + 1));
    }
    unknown(tag, first);
    return nullptr;
  }

  const Field* resolve_rest(const Tag& tag, const Field* field, const std::string& rest) {
    const std::size_t dot = rest.find('.');
    const Field* child =
        field->kind == FieldKind::kObject ? field->find(rest.substr(0, dot)) : nullptr;
    if (!child) {
      error(tag.line, "unknown field `" + tag.name + "`; " + kFieldsPage);
      return nullptr;
    }
    return dot == std::string::npos ? child : resolve_rest(tag, child, rest.substr(dot + 1));
  }

  void unknown(const Tag& tag, const std::string& name) {
    if (name.size() > kLongestName) return error(tag.line, "no field has a name so long");
    std::string nearest, here;
    std::size_t least = std::max<std::size_t>(2, name.size() / 3) + 1;
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (here.empty()) here = (*scope)->name;
      for (const Field& field : (*scope)->fields) {
        const std::size_t distance = edit_distance(name, field.name);
        if (distance >= least) continue;
        least = distance;
        nearest = field.name;
      }
    }
    error(tag.line,
          "unknown field `" + tag.name + "`" + (here.empty() ? "" : " in `" + here + "`") +
              (nearest.empty() ? "" : "; did you mean `" + nearest + "`?") + "; " + kFieldsPage);
  }

  const LoadTemplate& load_;
  std::string folder_;
  std::vector<OpenFile> files_;
  std::vector<const Field*> scopes_;
  std::vector<Section> sections_;
  std::size_t includes_ = 0;
  bool stopped_ = false;
  CheckedTemplate result_;
};

}  // namespace

CheckedTemplate check_template(const std::string& name, const Field& scope,
                               const LoadTemplate& load) {
  Checker checker(load, name.substr(0, name.find('/')));
  checker.push(&scope);
  checker.check_file(name);
  return std::move(checker).result();
}

}  // namespace peakbench::reports

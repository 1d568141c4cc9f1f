#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/render/record.h"

namespace peakbench::reports {

// Arithmetic for templates: + - * / and parentheses over decimal numbers. With it, templates
// compute positions and sizes of drawings, so that all styling stays in them.

// Throws std::invalid_argument that says what was read and where it stopped.
double evaluate(const std::string& expression);

// Mustache templates: found in the user's folder or ours, checked against the fields of their view,
// and rendered.
//
// Mustache shows a blank for an unknown name; here that is an error with file and line, found
// before anything is rendered. `{{> name}}` includes name.mustache, or a file with its own
// extension (style.css). `{{#calc}}...{{/calc}}` contains arithmetic over fields. Set-delimiter
// tags and recursive partials are refused.

enum class Escape { kHtml, kMarkdown };

// A view as templates see it: made once, however many of them show it or an item of its lists.
class Shown {
 public:
  template <Record View>
  explicit Shown(const View& view) : Shown(data_of(view), fields_of<View>()) {}

  // Of a list of views that this one has: `list` is its field.
  template <Record View>
  Shown item(const std::string& list, std::size_t index) const {
    return {*this, list, index, fields_of<View>()};
  }

 private:
  friend class Templates;
  struct Data;

  Shown(const nlohmann::json& data, const Field& scope);
  Shown(const Shown& whole, const std::string& list, std::size_t index, const Field& scope);

  std::shared_ptr<const Data> data_;
  const Field* scope_;
};

// Not from several threads.
class Templates {
 public:
  // A file of the first folder replaces the file of the same name in the second; the first may be
  // empty.
  Templates(std::string user_directory, std::string builtin_directory);
  ~Templates();
  Templates(const Templates&) = delete;
  Templates& operator=(const Templates&) = delete;

  // `name`: "html/index.html.mustache". Throws ConfigError with every error found.
  template <Record View>
  std::string render(const std::string& name, const View& view, Escape escape) const {
    return render(name, Shown(view), escape);
  }
  std::string render(const std::string& name, const Shown& shown, Escape escape) const;

 private:
  struct Read;

  Read& read(const std::string& name, const Field& scope, Escape escape) const;

  std::string user_, builtin_;
  // Each is read and checked once: a report of many tables renders some of them for every table.
  mutable std::map<std::pair<std::string, Escape>, std::unique_ptr<Read>> read_;
};

}  // namespace peakbench::reports

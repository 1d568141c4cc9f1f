// Mustache templates: found in the user's folder or ours, checked against the fields of the view
// that they are to show, rendered.
//
// Mustache shows a blank for a name it does not know; here that is an error with file and line,
// found before anything is rendered. `{{> name}}` includes name.mustache, or a file that has an
// extension of its own (style.css). In
// `{{#calc}}...{{/calc}}` stands arithmetic over fields. Set-delimiter tags and recursive partials
// are refused.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/render/record.h"

namespace peakbench::reports {

enum class Escape { kHtml, kMarkdown };

class Templates {
 public:
  // A file of the first folder replaces the file of the same name in the second; the first may be
  // empty.
  Templates(std::string user_directory, std::string builtin_directory);

  // `name`: "html/index.html.mustache". Throws ConfigError with every error found.
  template <Record View>
  std::string render(const std::string& name, const View& view, Escape escape) const {
    return render(name, data_of(view), fields_of<View>(), escape);
  }

 private:
  std::string render(const std::string& name, const nlohmann::json& data, const Field& scope,
                     Escape escape) const;

  std::string user_, builtin_;
};

}  // namespace peakbench::reports

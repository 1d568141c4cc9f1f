#include "result/selection_text.h"

#include <fmt/format.h>

namespace peakbench::result {
namespace {

std::string value_text(const nlohmann::json& value) {
  if (!value.is_string())
    return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const auto text = value.get<std::string>();
  const bool plain = !text.empty() && text.find_first_of(",+\" ") == std::string::npos;
  return plain ? text : fmt::format("\"{}\"", text);
}

}  // namespace

std::string selection_text(const Selection& selection) {
  std::string text = selection.id;
  for (const auto& [name, value] : selection.options.items())
    text += fmt::format(",{}={}", name, value_text(value));
  return text;
}

std::string stack_text(const std::vector<Selection>& strategies) {
  std::string text;
  for (const auto& strategy : strategies) {
    if (!text.empty()) text += '+';
    text += selection_text(strategy);
  }
  return text;
}

std::vector<Selection> without_plain_baseline(std::vector<Selection> strategies) {
  if (strategies.size() > 1)
    std::erase_if(strategies, [](const Selection& strategy) {
      return strategy.id == "baseline" && strategy.options.empty();
    });
  return strategies;
}

}  // namespace peakbench::result

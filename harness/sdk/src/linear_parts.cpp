#include "peakbench/linear_parts.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "peakbench/errors.h"

namespace peakbench {
namespace {

using Numbers = std::map<std::string, std::optional<std::int64_t>>;

// "q_proj:mlp=16" as the manifest's rules let it through.
Numbers parse(const std::string& value) {
  Numbers numbers;
  std::istringstream text(value);
  for (std::string part; std::getline(text, part, ':');) {
    const auto equals = part.find('=');
    auto& number = numbers[part.substr(0, equals)];
    if (equals != std::string::npos) number = std::stoll(part.substr(equals + 1));
  }
  return numbers;
}

std::vector<ChosenLinear> those_of(Model& model, const Numbers& numbers) {
  std::vector<ChosenLinear> chosen;
  for (const NamedLinear& linear : model.linears()) {
    const auto found = numbers.find(linear.part);
    if (found != numbers.end()) chosen.push_back({linear, found->second});
  }
  return chosen;
}

void need_every_part(const Model& model, const Numbers& numbers,
                     const std::vector<ChosenLinear>& chosen) {
  for (const auto& [part, number] : numbers) {
    const auto is_of = [&part = part](const ChosenLinear& one) { return one.linear.part == part; };
    if (std::any_of(chosen.begin(), chosen.end(), is_of)) continue;
    const std::string why = model.why_no_linear(part);
    throw Unsupported("this model has no " + part + " layer" + (why.empty() ? "" : ": " + why));
  }
}

}  // namespace

std::vector<ChosenLinear> choose_linears(Model& model, const std::string& value,
                                         const std::vector<std::string>& automatic) {
  if (value != "auto") {
    const Numbers numbers = parse(value);
    auto chosen = those_of(model, numbers);
    need_every_part(model, numbers, chosen);
    return chosen;
  }
  for (const std::string& parts : automatic)
    if (auto chosen = those_of(model, parse(parts)); !chosen.empty()) return chosen;
  throw Unsupported("this model has none of the linear layers that `auto` stands for");
}

}  // namespace peakbench

#include "targets.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "peakbench/errors.h"

namespace peakbench::lora {
namespace {

const std::vector<std::string> kAttention = {"q_proj", "k_proj", "v_proj", "output_proj"};
const std::vector<std::string> kParts = {"q_proj",      "k_proj", "v_proj",
                                         "output_proj", "mlp",    "output"};

bool has(const std::vector<NamedLinear>& linears, const std::string& part) {
  return std::any_of(linears.begin(), linears.end(),
                     [&](const NamedLinear& linear) { return linear.part == part; });
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Attention's projections as far as they are layers of their own; the MLP where none is.
std::set<std::string> automatic(const std::vector<NamedLinear>& linears) {
  std::set<std::string> parts;
  for (const std::string& part : kAttention) {
    if (has(linears, part)) parts.insert(part);
  }
  if (parts.empty()) parts.insert("mlp");
  return parts;
}

std::set<std::string> parse(const std::string& targets, const std::vector<NamedLinear>& linears) {
  std::set<std::string> known(kParts.begin(), kParts.end());
  for (const NamedLinear& linear : linears) known.insert(linear.part);
  std::set<std::string> parts;
  std::istringstream text(targets);
  for (std::string part; std::getline(text, part, ':');) {
    if (!known.contains(part)) {
      throw OptionError("lora: targets=" + targets + ": '" + part + "' is no part of a model; " +
                        "expected auto, or some of " + joined(known) + ", joined by ':'");
    }
    parts.insert(part);
  }
  if (parts.empty()) throw OptionError("lora: targets is empty; expected auto or parts of a model");
  return parts;
}

}  // namespace

std::vector<NamedLinear> target_layers(Model& model, const std::string& targets) {
  std::vector<NamedLinear> linears = model.linears();
  const auto parts = targets == "auto" ? automatic(linears) : parse(targets, linears);
  for (const std::string& part : parts) {
    if (has(linears, part)) continue;
    const std::string why = model.why_no_linear(part);
    throw Unsupported("lora: this model has no " + part + " layer to adapt" +
                      (why.empty() ? "" : ": " + why));
  }
  std::erase_if(linears, [&](const NamedLinear& linear) { return !parts.contains(linear.part); });
  return linears;
}

}  // namespace peakbench::lora

#include "plan/axes.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/nearest.h"

namespace peakbench::plan {
namespace {

using manifest::Kind;

const OptionTexts& table_of(const std::map<std::string, OptionTexts>& tables,
                            const std::string& id) {
  static const OptionTexts kNone;
  const auto found = tables.find(id);
  return found == tables.end() ? kNone : found->second;
}

}  // namespace

void check_integer(const std::string& name, std::int64_t value, std::int64_t least,
                   std::int64_t most) {
  if (value < least)
    throw ConfigError(
        fmt::format("{}: expected an integer of {} or more, got {}", name, least, value));
  if (value > most)
    throw ConfigError(
        fmt::format("{}: expected an integer of {} or less, got {}", name, most, value));
}

Resolver::Resolver(const Request& request, const Catalogue& catalogue, const DeviceHook& devices)
    : request_(request), catalogue_(catalogue), devices_(devices) {}

Choice Resolver::model(const std::string& section, const std::string& text) const {
  return at_place(request_.where, section + "/" + text, [&] {
    const auto typed = parse_selection(text);
    return catalogue_.choose(Kind::kModel, typed, table_of(request_.model_options, typed.id));
  });
}

Stack Resolver::stack(const std::string& section, const std::string& text) const {
  return at_place(request_.where, section + "/" + text, [&] {
    return make_stack(catalogue_, parse_stack(text), request_.strategy_options);
  });
}

std::vector<std::string> Resolver::devices(const std::string& section,
                                           const std::string& text) const {
  return at_place(request_.where, section + "/" + text, [&] {
    const auto device = normal_device(text);
    if (devices_) return devices_(device);
    return std::vector<std::string>{device == "auto" ? "cpu" : device};
  });
}

std::string Resolver::dtype(const std::string& section, const std::string& text) const {
  static const std::vector<std::string> kKnown{"fp32", "bf16"};
  return at_place(request_.where, section + "/" + text, [&] {
    if (std::ranges::count(kKnown, text) != 0) return text;
    throw ConfigError(fmt::format("unknown dtype \"{}\"{}", text, suggestion(text, kKnown)));
  });
}

std::int64_t Resolver::positive(const std::string& section, std::int64_t value) const {
  return at_place(request_.where, fmt::format("{}/{}", section, value), [&] {
    check_integer(section, value, 1, kMostSamples);
    return value;
  });
}

void Resolver::check_tables() const {
  const auto check = [&](Kind kind, const std::string& section, const auto& tables) {
    for (const auto& [id, options] : tables) {
      const std::string key = section + "/" + id;
      const Offer& offer = at_place(request_.where, key,
                                    [&, &id = id] { return std::cref(catalogue_.find(kind, id)); });
      for (const auto& [name, text] : options) {
        at_place(request_.where, key + "/" + name,
                 [&, &name = name, &text = text] { catalogue_.value(offer, name, text); });
      }
    }
  };
  check(Kind::kModel, "model_options", request_.model_options);
  check(Kind::kStrategy, "strategy_options", request_.strategy_options);
}

Axes Resolver::axes() const {
  Axes axes;
  for (const auto& text : request_.models) axes.models.push_back(model("models", text));
  for (const auto& text : request_.strategies) axes.stacks.push_back(stack("strategies", text));
  for (const auto& text : request_.devices) {
    for (auto& device : devices("devices", text)) axes.devices.push_back(std::move(device));
  }
  for (const auto& text : request_.dtypes) axes.dtypes.push_back(dtype("dtypes", text));
  for (const auto size : request_.batch_sizes)
    axes.batch_sizes.push_back(positive("batch_sizes", size));
  for (const auto length : request_.sequence_lengths) {
    axes.sequence_lengths.push_back(positive("sequence_lengths", length));
  }
  return axes;
}

}  // namespace peakbench::plan

// `peakbench describe`: one strategy or model in full, from its manifest and those of the others;
// no plugin code runs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "base/columns.h"
#include "base/errors.h"
#include "base/json.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/option_values.h"
#include "cli/plugins.h"
#include "cli/worker.h"
#include "planning/catalogue.h"
#include "planning/stack.h"
#include "reports/analysis/strategies_against.h"
#include "reports/render/format.h"

namespace peakbench::cli {
namespace {

using Json = nlohmann::ordered_json;
using planning::Entry;
using planning::Kind;
using planning::Offer;

constexpr const char* kDescribeFooter = R"(Examples:
  peakbench describe lora
  peakbench describe checkpointing --json
  peakbench describe vit-l-16
  peakbench describe sgd --plugins build/sgd
Exit codes: 0 done; 2 no strategy or model has this name.)";

struct DescribeArguments {
  std::string id;
  bool json = false;
  std::vector<std::string> plugins;
};

// What the other strategies are to this one.
struct Company {
  std::vector<std::string> with;
  std::vector<std::pair<std::string, std::string>> without;  // id, reason
};

Company company_of(const Entry& entry, const std::vector<Offer>& all) {
  Company company;
  for (const auto& listed : all) {
    const Entry& other = *listed.entry;
    if (other.id == entry.id || other.id == "baseline" || entry.id == "baseline") continue;
    const auto conflict = planning::conflict_between(entry, other);
    if (conflict.empty())
      company.with.push_back(other.id);
    else
      company.without.emplace_back(other.id, conflict);
  }
  return company;
}

// Models that lack what it needs, with what that is.
std::vector<std::pair<std::string, std::string>> unsuited(const Entry& entry,
                                                          const std::vector<Offer>& models) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& model : models)
    for (const auto& need : entry.needs)
      if (std::ranges::find(model.entry->facts, need) == model.entry->facts.end())
        found.emplace_back(model.entry->id, need);
  return found;
}

std::string promise_text(const Entry& entry) {
  if (entry.promise == "bit_identical")
    return "Losses and trained parameters are bit-identical to training without it.";
  if (entry.promise == "different_problem")
    return "It trains differently: not comparable with training without it, step by step.";
  std::vector<std::string> parts;
  if (entry.tolerance) parts.push_back(reports::plain_number(*entry.tolerance));
  if (entry.relative_tolerance)
    parts.push_back(reports::plain_number(*entry.relative_tolerance) + " of the value");
  return fmt::format("Losses and trained parameters differ by at most {} from training without it.",
                     fmt::join(parts, " plus "));
}

class Text {
 public:
  void heading(const std::string& title) { text_ += "\n" + title + "\n"; }
  explicit Text(int width) : width_(width) {}
  void line(const std::string& words) { text_ += hanging("  ", printable(words), width_); }
  void pair(const std::string& name, const std::string& words) {
    if (!words.empty())
      text_ += hanging(fmt::format("  {:<18} ", printable(name)), printable(words), width_);
  }
  void raw(const std::string& text) { text_ += text; }
  const std::string& get() const { return text_; }

 private:
  const int width_;
  std::string text_;
};

void heading(Text& text, const Entry& entry) {
  text.raw(fmt::format("{}: {}\n", entry.id, printable(entry.title)));
  text.line(entry.summary);
}

void options(Text& text, const Entry& entry, int width) {
  if (entry.options.empty()) return;
  text.heading("Options");
  for (const auto& option : entry.options) text.raw(option_line(option, width));
}

void source(Text& text, const Offer& listed) {
  text.heading("Source");
  if (!listed.entry->source_url.empty()) text.line(listed.entry->source_url);
  text.line("plugin " + listed.path);
}

std::string describe(const Offer& listed, const std::vector<Offer>& strategies,
                     const std::vector<Offer>& models, int width) {
  const Entry& entry = *listed.entry;
  const Company company = company_of(entry, strategies);
  Text text(width);
  heading(text, entry);
  if (!entry.aliases.empty())
    text.line(fmt::format("Also called {}.", fmt::join(entry.aliases, ", ")));
  text.heading("Promise about training");
  text.line(promise_text(entry));
  const auto& cost = entry.cost;
  if (!(cost.parameters + cost.gradients + cost.optimizer_state + cost.activations).empty()) {
    text.heading("Effect on memory");
    text.pair("parameters", cost.parameters);
    text.pair("gradients", cost.gradients);
    text.pair("optimizer state", cost.optimizer_state);
    text.pair("activations", cost.activations);
  }
  if (const auto line = analysis::line_for_scripts(entry.id); !line.empty()) {
    text.heading("In your own script");
    text.line(std::string(line));
  }
  options(text, entry, width);
  const auto lacking = unsuited(entry, models);
  if (!entry.needs.empty() || !entry.requires_slots.empty()) {
    text.heading("Needs");
    for (const auto& need : entry.needs) text.pair(need, "of the model");
    for (const auto& slot : entry.requires_slots)
      text.pair(slot, "of another strategy in the stack");
    for (const auto& [model, need] : lacking) text.line(fmt::format("{} has no {}", model, need));
  }
  if (!company.with.empty()) {
    text.heading("Stacks with");
    text.line(fmt::format("{}", fmt::join(company.with, ", ")));
  }
  if (!company.without.empty()) {
    text.heading("Does not stack with");
    for (const auto& [id, reason] : company.without) text.pair(id, reason);
  }
  source(text, listed);
  return text.get();
}

Json description(const Offer& listed, const std::vector<Offer>& strategies,
                 const std::vector<Offer>& models) {
  Json json = entry_json(listed, Kind::kStrategy);
  const Company company = company_of(*listed.entry, strategies);
  json["stacks_with"] = company.with;
  json["conflicts_with"] = Json::array();
  for (const auto& [id, reason] : company.without)
    json["conflicts_with"].push_back({{"id", id}, {"reason", reason}});
  json["models_without"] = Json::array();
  for (const auto& [model, need] : unsuited(*listed.entry, models))
    json["models_without"].push_back({{"id", model}, {"need", need}});
  return json;
}

std::string describe_model(const Offer& listed, int width) {
  const Entry& entry = *listed.entry;
  Text text(width);
  heading(text, entry);
  text.line(fmt::format("{} parameters{}", reports::grouped(entry.parameters),
                        entry.has_sequence
                            ? fmt::format(", --seq {} by default", entry.default_sequence_length)
                            : ""));
  options(text, entry, width);
  source(text, listed);
  return text.get();
}

int run(World& world, const DescribeArguments& arguments) {
  const auto found = find_plugins(world, worker_to_look_at(world), arguments.plugins);
  const auto strategies = entries_of(found, Kind::kStrategy);
  const auto models = entries_of(found, Kind::kModel);
  const auto model =
      std::ranges::find(models, arguments.id, [](const Offer& one) { return one.entry->id; });
  if (model != models.end()) {
    world.out << (arguments.json ? json_text(entry_json(*model, Kind::kModel))
                                 : describe_model(*model, world.out_width));
    return kDone;
  }
  const planning::Catalogue catalogue(found);
  const auto& listed = catalogue.find(Kind::kStrategy, arguments.id);
  world.out << (arguments.json ? json_text(description(listed, strategies, models))
                               : describe(listed, strategies, models, world.out_width));
  return kDone;
}

}  // namespace

Command add_describe(CLI::App& app, World& world) {
  auto* command = subcommand(
      app, "describe", "Describe a strategy (effect, promise, conflicts) or a model's options",
      kDescribeFooter);
  const auto arguments = std::make_shared<DescribeArguments>();
  command->add_option("name", arguments->id, "Name of a strategy or a model")->required();
  command->add_flag("--json", arguments->json, "Print JSON");
  add_repeated(*command, "--plugins", arguments->plugins, "Folder with more plugins", "DIR");
  add_torch(*command, world);
  return [&world, arguments] { return run(world, *arguments); };
}

}  // namespace peakbench::cli

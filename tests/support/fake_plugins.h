// Plugins as manifests found them: a model of each family and strategies that take slots, need
// facts and conflict.
#pragma once

#include "planning/manifest.h"

namespace peakbench::testing {

inline planning::Option integer_option(const std::string& name, std::int64_t value, double least,
                                       double most) {
  planning::Option option;
  option.name = name;
  option.type = planning::OptionType::kInteger;
  option.default_value = value;
  option.minimum = least;
  option.maximum = most;
  return option;
}

inline planning::Option choice_option(const std::string& name,
                                      const std::vector<std::string>& choices) {
  planning::Option option;
  option.name = name;
  option.type = planning::OptionType::kChoice;
  option.default_value = choices[0];
  option.choices = choices;
  return option;
}

inline planning::Option path_option(const std::string& name) {
  planning::Option option;
  option.name = name;
  option.type = planning::OptionType::kPath;
  option.default_value = "";
  return option;
}

inline planning::Option parts_option(const std::string& name) {
  planning::Option option;
  option.name = name;
  option.type = planning::OptionType::kParts;
  option.default_value = "auto";
  option.minimum = 1;
  option.maximum = 64;
  return option;
}

inline planning::Entry strategy_entry(const std::string& id, int order,
                                      const std::vector<std::string>& slots = {}) {
  planning::Entry entry;
  entry.id = entry.title = entry.summary = id;
  entry.order = order;
  entry.slots = slots;
  entry.promise = "bit_identical";
  return entry;
}

inline planning::Entry model_entry(const std::string& id, const std::vector<std::string>& facts,
                                   std::int64_t sequence_length) {
  planning::Entry entry;
  entry.id = entry.title = entry.summary = id;
  entry.facts = facts;
  entry.has_sequence = sequence_length > 0;
  entry.default_sequence_length = sequence_length;
  entry.options = {integer_option("layers", 24, 1, 200), path_option("weights")};
  return entry;
}

inline planning::Found fake_plugins() {
  using planning::Kind;
  auto baseline = strategy_entry("baseline", 0);
  baseline.options = {integer_option("seed", 0, 0, 100)};
  auto lora = strategy_entry("lora", 10, {"adapters"});
  lora.options = {integer_option("rank", 8, 1, 4096),
                  choice_option("adapter_dtype", {"fp32", "bf16"})};
  lora.needs = {"linear_layers"};
  lora.promise = "different_problem";
  auto dora = strategy_entry("dora", 11, {"adapters"});
  dora.promise = "different_problem";
  dora.options = {parts_option("targets")};
  auto checkpointing = strategy_entry("checkpointing", 20);
  checkpointing.options = {integer_option("every", 1, 1, 64)};
  checkpointing.needs = {"blocks"};
  checkpointing.aliases = {"gradient-checkpointing"};
  auto fused = strategy_entry("fused-in-backward", 30, {"schedule"});
  fused.capabilities = {"updates_in_backward"};
  auto clip = strategy_entry("clip", 55);
  clip.wrappers = {"gradient_transforms"};
  auto lamb = strategy_entry("lamb", 56, {"update_rule"});
  lamb.capabilities = {"needs_all_gradients"};
  lamb.promise = "different_problem";
  auto adam8 = strategy_entry("adam-8bit", 50, {"update_rule"});
  adam8.promise = "within_tolerance";
  adam8.tolerance = 1e-3;
  adam8.relative_tolerance = 1e-2;
  auto rounding = strategy_entry("rounding", 60);
  rounding.promise = "within_tolerance";
  rounding.tolerance = 2e-3;
  rounding.conflicts = {{"dora", "both round"}};
  auto quantised = strategy_entry("quantised", 5, {"base_weights"});
  quantised.requires_slots = {"adapters"};
  auto graphs = strategy_entry("graphs", 80, {"step_runner"});
  graphs.capabilities = {"needs_all_gradients", "replays_steps"};
  auto lisa = strategy_entry("lisa", 16);
  lisa.capabilities = {"changes_trained_set"};
  lisa.promise = "different_problem";
  lisa.options = {integer_option("interval", 20, 1, 1000)};
  lisa.period = {"interval", 1};
  auto dropping = strategy_entry("layer-dropping", 21);
  dropping.capabilities = {"decides_on_host"};
  dropping.promise = "different_problem";
  auto parts = strategy_entry("part-checkpointing", 22);
  parts.options = {choice_option("parts", {"none", "attention", "mlp"})};
  parts.options[0].needs = {{"attention", {"attention_part"}}, {"mlp", {"mlp_part", "blocks"}}};
  auto half = strategy_entry("half", 65);
  half.promise = "within_tolerance";
  half.relative_tolerance = 3e-2;

  planning::Found found;
  const auto add = [&](Kind kind, const std::string& path, std::vector<planning::Entry> entries) {
    planning::Plugin plugin;
    plugin.path = path;
    plugin.kind = kind;
    plugin.entries = std::move(entries);
    found.plugins.push_back(std::move(plugin));
  };
  auto vit = model_entry("vit-l-16", {"blocks", "linear_layers"}, 0);
  vit.linears = {"mlp", "output", "acme.gate"};
  vit.missing_linears = {{{"q_proj", "k_proj"}, "its attention is packed"}};
  add(Kind::kModel, "/p/vit.so", {vit});
  add(Kind::kModel, "/p/decoder.so",
      {model_entry("qwen2.5-0.5b", {"blocks", "linear_layers"}, 512),
       model_entry("plain", {}, 64)});
  auto contrastive = model_entry("contrastive", {}, 0);
  contrastive.loss = "whole_batch";
  auto masked = model_entry("masked", {"output_head"}, 64);
  masked.loss = "per_token";
  auto uncounted = model_entry("uncounted", {}, 64);
  uncounted.loss = "per_token";
  add(Kind::kModel, "/p/losses.so", {contrastive, masked, uncounted});
  add(Kind::kModel, "/p/inputs.so",
      {model_entry("lengths", {"attention_part", "changes_batch"}, 64),
       model_entry("experts", {"blocks", "decides_on_host"}, 64)});
  add(Kind::kStrategy, "/p/baseline.so", {baseline});
  add(Kind::kStrategy, "/p/lora.so", {lora, dora});
  add(Kind::kStrategy, "/p/more.so",
      {strategy_entry("foreach-off", 40, {"kernel_grouping"}), fused, checkpointing, adam8,
       rounding, half, clip, lamb, quantised, graphs, lisa, dropping, parts,
       strategy_entry("micro-batches", 70, {"micro_batches"})});
  return found;
}

}  // namespace peakbench::testing

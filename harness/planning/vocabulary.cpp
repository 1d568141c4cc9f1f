#include "planning/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/nearest.h"

namespace peakbench::planning {
namespace {

using Names = std::vector<std::string>;

bool holds(const Names& names, const char* name) { return std::ranges::count(names, name) != 0; }

}  // namespace

const Names& slots() {
  static const Names names{"base_weights", "adapters",      "update_rule", "kernel_grouping",
                           "schedule",     "micro_batches", "loss_head",   "step_runner"};
  return names;
}

const Names& wrappers() {
  static const Names names{"freezing",
                           "embedding_wrappers",
                           "block_wrappers",
                           "saved_tensor_hooks",
                           "step_contexts",
                           "step_listeners",
                           "loss_transforms",
                           "gradient_hooks",
                           "gradient_transforms",
                           "update_rule_wrappers"};
  return names;
}

const Names& capabilities() {
  static const Names names{"updates_in_backward", "needs_all_gradients", "replays_steps",
                           "changes_trained_set", "decides_on_host"};
  return names;
}

const Names& facts() {
  static const Names names{"attention_part",   "blocks",         "changes_batch", "decides_on_host",
                           "embedding",        "linear_layers",  "mlp_part",      "output_head",
                           "packed_attention", "tied_embeddings"};
  return names;
}

const Names& parts() {
  static const Names names{"q_proj",      "k_proj", "v_proj", "qkv_proj",
                           "output_proj", "mlp",    "output"};
  return names;
}

namespace {

// A fact that somebody's models and strategies agree on between themselves has a dot:
// "acme.packed".
bool is_own_fact(const std::string& name) {
  const auto dot = name.find('.');
  return dot != std::string::npos && dot + 1 < name.size() && is_name(name, "._-");
}

}  // namespace

bool is_part(const std::string& name) {
  return std::ranges::count(parts(), name) != 0 || is_own_fact(name);
}

const Names& promises() {
  static const Names names{"bit_identical", "within_tolerance", "different_problem"};
  return names;
}

const Names& losses() {
  static const Names names{"per_sample", "per_token", "whole_batch"};
  return names;
}

bool updates_in_backward(const Entry& strategy) {
  return holds(strategy.capabilities, "updates_in_backward");
}

bool needs_all_gradients(const Entry& strategy) {
  return holds(strategy.capabilities, "needs_all_gradients") ||
         holds(strategy.wrappers, "gradient_transforms");
}

bool is_name(const std::string& text, const char* also) {
  const std::string allowed = std::string("abcdefghijklmnopqrstuvwxyz0123456789") + also;
  return !text.empty() && text.size() <= 64 && std::isalnum(static_cast<unsigned char>(text[0])) &&
         text.find_first_not_of(allowed) == std::string::npos;
}

void Problems::check_keys(const Fields& fields, const std::vector<std::string>& known) {
  for (const auto& key : fields.keys()) {
    if (std::ranges::count(known, key) != 0) continue;
    add(FieldError(fields.pointer(key), "unknown key" + suggestion(key, known)).what());
  }
}

std::string read_text(const Fields& fields, const std::string& key) {
  auto text = fields.get<std::string>(key);
  if (text.empty()) throw FieldError(fields.pointer(key), "is empty");
  return text;
}

std::string read_one_of(const Fields& fields, const std::string& key, const Names& known) {
  auto text = fields.get<std::string>(key);
  if (std::ranges::count(known, text) == 0) {
    throw FieldError(fields.pointer(key), "unknown \"" + text + "\"" + suggestion(text, known));
  }
  return text;
}

Names read_names(const Fields& fields, const std::string& key,
                 const std::function<void(const std::string&, const std::string&)>& check) {
  auto names = fields.get_or<Names>(key, {});
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto pointer = fmt::format("{}/{}", fields.pointer(key), i);
    check(names[i], pointer);
    if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
        names.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw FieldError(pointer, "\"" + names[i] + "\" is there twice");
    }
  }
  return names;
}

std::vector<std::string> read_facts(const Fields& fields, const std::string& key) {
  return read_names(fields, key, [](const auto& name, const auto& pointer) {
    if (std::ranges::count(facts(), name) != 0 || is_own_fact(name)) return;
    const char* own = nearest(name, facts()) ? ""
                                             : "; a fact of your own has a dot in its name, like "
                                               "\"acme.packed\"";
    throw FieldError(pointer, "unknown \"" + name + "\"" + suggestion(name, facts()) + own);
  });
}

}  // namespace peakbench::planning

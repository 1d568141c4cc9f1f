#include "manifest/vocabulary.h"

#include <algorithm>
#include <cctype>

namespace peakbench::manifest {
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

bool is_own_fact(const std::string& name) {
  const auto dot = name.find('.');
  return dot != std::string::npos && dot + 1 < name.size() && is_name(name, "._-");
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

}  // namespace peakbench::manifest

// The slots of a recipe and its lists of wrappers, each with the manifest's word for it. Code for
// all of them (comparing, counting, naming) uses this list, so a new one is one line here. Words:
// planning/vocabulary.h, which does not know recipes; a test compares both.
#pragma once

#include <memory>
#include <utility>

#include "peakbench/recipe.h"

namespace peakbench::worker {

// visit(word, pointer to member). A slot holds an object, or a number: kHoldsObject.
template <typename Visit>
void for_each_slot(Visit&& visit) {
  visit("base_weights", &Recipe::base_weights);
  visit("adapters", &Recipe::adapters);
  visit("update_rule", &Recipe::update_rule);
  visit("kernel_grouping", &Recipe::kernel_grouping);
  visit("schedule", &Recipe::schedule);
  visit("micro_batches", &Recipe::micro_batches);
  visit("loss_head", &Recipe::loss_head);
  visit("step_runner", &Recipe::step_runner);
}

// visit(word, pointer to member) of the lists of objects. Not `freezing`: its entries are
// functions, which have no address to identify them.
template <typename Visit>
void for_each_wrapper_list(Visit&& visit) {
  visit("embedding_wrappers", &Recipe::embedding_wrappers);
  visit("block_wrappers", &Recipe::block_wrappers);
  visit("saved_tensor_hooks", &Recipe::saved_tensor_hooks);
  visit("step_contexts", &Recipe::step_contexts);
  visit("step_listeners", &Recipe::step_listeners);
  visit("loss_transforms", &Recipe::loss_transforms);
  visit("gradient_hooks", &Recipe::gradient_hooks);
  visit("gradient_transforms", &Recipe::gradient_transforms);
  visit("update_rule_wrappers", &Recipe::update_rule_wrappers);
}

template <typename Slot>
inline constexpr bool kHoldsObject = false;
template <typename Object>
inline constexpr bool kHoldsObject<std::shared_ptr<Object>> = true;

// An entry of a list, with its place in the list or without one.
template <typename Wrapper>
std::shared_ptr<Wrapper>& object_of(std::shared_ptr<Wrapper>& entry) {
  return entry;
}
template <typename Wrapper>
const std::shared_ptr<Wrapper>& object_of(const std::shared_ptr<Wrapper>& entry) {
  return entry;
}
template <typename Place, typename Wrapper>
std::shared_ptr<Wrapper>& object_of(std::pair<Place, std::shared_ptr<Wrapper>>& entry) {
  return entry.second;
}
template <typename Place, typename Wrapper>
const std::shared_ptr<Wrapper>& object_of(const std::pair<Place, std::shared_ptr<Wrapper>>& entry) {
  return entry.second;
}

}  // namespace peakbench::worker

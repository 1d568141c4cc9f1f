#include "worker/contributions.h"

#include <c10/core/GradMode.h>
#include <c10/util/StringUtil.h>

#include <algorithm>

#include "worker/recipe_members.h"

namespace peakbench::worker {

BlockRuns::BlockRuns(const std::vector<at::Tensor>& inputs, std::string part)
    : part_(std::move(part)) {
  if (!inputs.empty() && inputs.front().defined()) whole_shape_ = inputs.front().sizes().vec();
  const auto whole = amount_of(inputs);
  is_comparable_ = whole.has_value();
  whole_ = whole.value_or(0);
}

std::optional<std::int64_t> BlockRuns::amount_of(const std::vector<at::Tensor>& inputs) const {
  if (whole_shape_.empty() || inputs.empty() || !inputs.front().defined()) return std::nullopt;
  const auto sizes = inputs.front().sizes();
  if (!part_.empty()) {
    // Flattened, or sliced along the sequence: only the features must be all there.
    const bool same = !sizes.empty() && sizes.back() == whole_shape_.back() && sizes.back() > 0;
    return same ? std::optional(inputs.front().numel() / sizes.back()) : std::nullopt;
  }
  const bool same = sizes.size() == whole_shape_.size() &&
                    std::equal(sizes.begin() + 1, sizes.end(), whole_shape_.begin() + 1);
  return same ? std::optional(sizes[0]) : std::nullopt;
}

void BlockRuns::note(const std::vector<at::Tensor>& inputs) {
  const auto amount = amount_of(inputs);
  is_comparable_ = is_comparable_ && amount.has_value();
  if (c10::GradMode::is_enabled()) with_autograd_ += amount.value_or(0);
  if (is_over_) return;
  ++calls_;
  seen_ += amount.value_or(0);
}

std::string BlockRuns::unlike(const std::vector<at::Tensor>& inputs) const {
  if (whole_shape_.empty()) return "";
  if (inputs.empty() || !inputs.front().defined()) return "no input";
  if (amount_of(inputs)) return "";
  return c10::str("an input of ", inputs.front().sizes(), " (it was given ",
                  at::IntArrayRef(whole_shape_), ")");
}

std::string BlockRuns::in_words(std::size_t block, const char* how, std::int64_t seen) const {
  return "runs " + named(block) + how + " on " + std::to_string(seen) + " of " +
         std::to_string(whole_) + (part_.empty() ? " samples" : " positions");
}

std::string BlockRuns::named(std::size_t block) const {
  return (part_.empty() ? "block " : part_ + " of block ") + std::to_string(block);
}

std::string BlockRuns::missing(std::size_t block) const {
  if (calls_ == 0) return "leaves " + named(block) + " out";
  return is_comparable_ && seen_ < whole_ ? in_words(block, "", seen_) : "";
}

std::string BlockRuns::missing_gradients(std::size_t block) const {
  const bool some = is_comparable_ && with_autograd_ > 0 && with_autograd_ < whole_;
  return some ? in_words(block, " with autograd", with_autograd_) : "";
}

namespace {

using Names = std::vector<std::string>;

bool holds(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct SlotChange {
  const char* slot;
  bool changed, cleared, holds_object;
};

std::vector<SlotChange> slot_changes(const Recipe& before, const Recipe& after) {
  std::vector<SlotChange> changes;
  for_each_slot([&](const char* slot, auto member) {
    const auto& was = before.*member;
    const auto& is = after.*member;
    changes.push_back({slot, was != is, was && !is, kHoldsObject<std::decay_t<decltype(is)>>});
  });
  return changes;
}

// A list of wrappers as addresses, null where an entry is empty.
struct WrapperList {
  const char* name;
  std::vector<const void*> before, after;
};

std::vector<WrapperList> wrapper_lists(const Recipe& before, const Recipe& after) {
  std::vector<WrapperList> lists;
  for_each_wrapper_list([&](const char* name, auto member) {
    WrapperList& list = lists.emplace_back(WrapperList{name, {}, {}});
    for (const auto& entry : before.*member) list.before.push_back(object_of(entry).get());
    for (const auto& entry : after.*member) list.after.push_back(object_of(entry).get());
  });
  return lists;
}

// What a list has beyond what it had; in `after`'s order.
std::vector<const void*> added_to(const WrapperList& list, const Owner& owner) {
  std::vector<const void*> added = list.after;
  for (const void* one : list.before) {
    const auto found = std::find(added.begin(), added.end(), one);
    if (found == added.end())
      refuse(owner, std::string("removes from ") + list.name +
                        " what another strategy put there; add to the list, and change nothing of "
                        "others");
    added.erase(found);
  }
  return added;
}

void need_declared(const Owner& owner, const Names& declared, const std::string& name,
                   const std::string& field, const std::string& does) {
  if (!holds(declared, name))
    refuse(owner, does + " " + name + ", which its manifest does not declare: put \"" + name +
                      "\" into \"" + field + "\" of plugin.json");
}

bool belongs_to_update(const std::string& place) {
  return place == "update_rule" || place == "gradient_transforms" ||
         place == "update_rule_wrappers";
}

}  // namespace

void Contributions::take(const Owner& owner, const planning::Entry& manifest, const Recipe& before,
                         const Recipe& after) {
  if (baseline_.empty()) baseline_ = owner.id;
  capabilities_[owner.id] = manifest.capabilities;
  promises_[owner.id] = manifest.promise;
  take_slots(owner, manifest, before, after);
  take_wrappers(owner, manifest, before, after);
}

void Contributions::take_slots(const Owner& owner, const planning::Entry& manifest,
                               const Recipe& before, const Recipe& after) {
  const bool first = slots_.empty();
  if (after.micro_batches < 1)
    refuse(owner, "asks for " + std::to_string(after.micro_batches) +
                      " micro-batches; a step has 1 or more");
  for (const auto& [slot, changed, cleared, holds_object] : slot_changes(before, after)) {
    if (cleared)
      refuse(owner, std::string("clears the slot ") + slot + ", which " +
                        slots_.at(slot)->owner.id +
                        " had filled; put another object there, or leave it");
    if (changed && !first) need_declared(owner, manifest.slots, slot, "slots", "changes the slot");
    if (!changed && holds(manifest.slots, slot))
      throw NoEffect(owner.id + " takes the slot " + slot + " and leaves it as it was");
    if (!changed) continue;
    slots_[slot] = &add(owner, slot);
    slots_[slot]->is_called = holds_object;
  }
}

void Contributions::take_wrappers(const Owner& owner, const planning::Entry& manifest,
                                  const Recipe& before, const Recipe& after) {
  const auto took = [&](const std::string& list, std::size_t count) {
    if (count > 0) need_declared(owner, manifest.wrappers, list, "wrappers", "adds to");
    if (count == 0 && holds(manifest.wrappers, list))
      throw NoEffect(owner.id + " declares " + list + " and adds nothing to it");
  };
  for (const WrapperList& list : wrapper_lists(before, after)) {
    const auto added = added_to(list, owner);
    if (std::find(added.begin(), added.end(), nullptr) != added.end())
      refuse(owner, std::string("adds a null pointer to ") + list.name);
    took(list.name, added.size());
    for (const void* one : added) wrappers_[{list.name, one}] = &add(owner, list.name);
  }
  if (after.freezing.size() < before.freezing.size())
    refuse(owner, "removes from freezing what another strategy put there");
  for (std::size_t i = before.freezing.size(); i < after.freezing.size(); ++i) {
    if (!after.freezing[i]) refuse(owner, "adds an empty function to freezing");
    freezing_.push_back(&add(owner, "freezing"));
  }
  took("freezing", after.freezing.size() - before.freezing.size());
}

Contribution& Contributions::add(const Owner& owner, const std::string& place) {
  Contribution& contribution = contributions_.emplace_back();
  contribution.owner = owner;
  contribution.place = place;
  return contribution;
}

Contribution* Contributions::slot(const std::string& name) {
  const auto found = slots_.find(name);
  return found == slots_.end() ? nullptr : found->second;
}

Contribution* Contributions::wrapper(const std::string& list, const void* object) {
  const auto found = wrappers_.find({list, object});
  return found == wrappers_.end() ? nullptr : found->second;
}

const Contribution* Contributions::first_that(std::atomic<bool> Contribution::*did) const {
  const auto found = std::ranges::find_if(
      contributions_, [&](const Contribution& one) { return (one.*did).load(); });
  return found == contributions_.end() ? nullptr : &*found;
}

Contribution* Contributions::freezing(std::size_t n) {
  return n < freezing_.size() ? freezing_[n] : nullptr;
}

Contribution& Contributions::add_hook(const Owner& owner) { return add(owner, "on_gradient"); }

bool Contributions::has_capability(const Owner& owner, const std::string& capability) const {
  const auto found = capabilities_.find(owner.id);
  return found != capabilities_.end() && holds(found->second, capability);
}

bool Contributions::has_capability(const std::string& capability) const {
  return std::any_of(capabilities_.begin(), capabilities_.end(),
                     [&](const auto& owned) { return holds(owned.second, capability); });
}

// A training that never updates has no optimizer state, and so a peak that is nobody's.
void Contributions::need_some_update(const Contribution& skipping, std::int64_t steps) const {
  if (slots_.at("update_rule")->calls > 0) return;
  throw NoEffect("no step updated anything: " + skipping.owner.id +
                 " skipped the update in each of " + std::to_string(steps) +
                 " steps (GradientTransform::apply returned false). Return true for an update, or "
                 "measure more steps (--steps) until there is one");
}

void Contributions::note_misfit(const Parameter& parameter, const Owner& owner, const char* call) {
  misfits_[parameter.tensor.unsafeGetTensorImpl()] = {&owner, call};
}

Call Contributions::who_left_misfit(const Parameter& parameter) const {
  const auto found = misfits_.find(parameter.tensor.unsafeGetTensorImpl());
  return found == misfits_.end() ? Call{} : found->second;
}

// A slot's first owner is out of it once another has taken it.
bool Contributions::in_force(const Contribution& contribution) const {
  const auto slot = slots_.find(contribution.place);
  return slot == slots_.end() || slot->second == &contribution;
}

bool Contributions::departs_at(const std::string& place) const {
  return std::ranges::any_of(contributions_, [&](const Contribution& one) {
    return one.place == place && in_force(one) && !promises(one.owner);
  });
}

bool Contributions::promises(const Owner& owner) const {
  const auto found = promises_.find(owner.id);
  return found != promises_.end() && found->second != "different_problem";
}

void Contributions::note_unlike_baseline(const Owner& owner, const std::string& sentence) {
  if (unlike_baseline_.empty() && promises(owner)) unlike_baseline_ = owner.id + " " + sentence;
}

void Contributions::watch(const Owner& owner, std::size_t block,
                          std::shared_ptr<const BlockRuns> runs) {
  if (promises(owner)) watched_.push_back({owner, block, std::move(runs)});
}

std::string Contributions::unlike_baseline() const {
  if (!unlike_baseline_.empty()) return unlike_baseline_;
  for (const auto& [owner, block, runs] : watched_)
    if (const auto missing = runs->missing_gradients(block); !missing.empty())
      return owner.id + " " + missing;
  for (const Contribution& contribution : contributions_) {
    if (!promises(contribution.owner)) continue;
    if (contribution.place == "freezing" && contribution.calls > 0)
      return contribution.owner.id + " freezes parameters that the baseline trains";
    if (contribution.skipped_update)
      return contribution.owner.id + " skips updates that the baseline makes";
  }
  return "";
}

void Contributions::need_calls(std::int64_t steps, bool runner_updates) const {
  const Contribution* skips = first_that(&Contribution::skipped_update);
  if (skips != nullptr) need_some_update(*skips, steps);
  for (const Contribution& contribution : contributions_) {
    if (!contribution.is_called || contribution.calls > 0 || !in_force(contribution)) continue;
    if (skips != nullptr && belongs_to_update(contribution.place)) continue;
    if (runner_updates && contribution.owner.id == baseline_ && contribution.place == "update_rule")
      continue;
    refuse_idle(contribution, steps);
  }
}

void Contributions::refuse_idle(const Contribution& contribution, std::int64_t steps) {
  if (contribution.place == "freezing")
    throw NoEffect(contribution.owner.id + " has no effect: it freezes no parameter");
  throw NoEffect(contribution.owner.id + " has no effect: what it put into " + contribution.place +
                 (contribution.called_in_vain ? " was given no parameter that has a gradient in "
                                              : " was never called in ") +
                 std::to_string(steps) + (steps == 1 ? " step" : " steps"));
}

}  // namespace peakbench::worker

#include "worker/step_tally.h"

#include <algorithm>
#include <unordered_set>

namespace peakbench::worker {

StateNames::StateNames(const std::vector<Parameter>& parameters) {
  for (const Parameter& parameter : parameters)
    owners_.emplace(parameter.tensor.unsafeGetTensorImpl(), parameter.name);
}

std::string StateNames::name_of(const at::Tensor& parameter, const std::string& state) const {
  const auto owner = owners_.find(parameter.unsafeGetTensorImpl());
  return owner == owners_.end() ? state : owner->second + "." + state;
}

void StateNames::name(UpdateRule& rule, Observer& observer) const {
  rule.visit_state([&](const at::Tensor& parameter, const std::string& name, at::Tensor& state) {
    observer.name_storage(state, StorageRole::kOptimizerState, name_of(parameter, name));
  });
}

void StateNames::name(UpdateRule& rule, const std::vector<Parameter>& updated, Observer& observer) {
  std::unordered_set<const at::TensorImpl*> now;
  for (const Parameter& parameter : updated) {
    now.insert(parameter.tensor.unsafeGetTensorImpl());
    owners_.try_emplace(parameter.tensor.unsafeGetTensorImpl(), parameter.name);
  }
  rule.visit_state([&](const at::Tensor& parameter, const std::string& name, at::Tensor& state) {
    const auto* owner = parameter.unsafeGetTensorImpl();
    if (!now.contains(owner) && owners_.contains(owner)) return;
    observer.name_storage(state, StorageRole::kOptimizerState, name_of(parameter, name));
  });
}

namespace {

bool has_gradient_now(const Parameter& parameter) { return parameter.tensor.grad().defined(); }

}  // namespace

StepTally::StepTally(const std::vector<Parameter>& parameters) {
  entries_.reserve(parameters.size());
  for (const Parameter& parameter : parameters) {
    index_.emplace(parameter.tensor.unsafeGetTensorImpl(), entries_.size());
    entries_.push_back({.name = parameter.name,
                        .tensor = parameter.tensor,
                        .gradient = WeakTensor(at::Tensor().getIntrusivePtr())});
  }
}

StepTally::Entry* StepTally::find(const Parameter& parameter) {
  const auto found = index_.find(parameter.tensor.unsafeGetTensorImpl());
  return found == index_.end() ? nullptr : &entries_[found->second];
}

void StepTally::begin_step(std::int64_t micro_batches) {
  micro_batches_ = micro_batches;
  ++step_;
  passes_in_step_ = 0;
  for (Entry& entry : entries_) {
    entry.had_gradient = entry.has_gradient;
    entry.has_gradient = entry.changed = entry.in_first_pass = entry.in_pass = false;
    entry.handed_over = entry.given_to_rule = 0;
    entry.version = entry.tensor._version();
  }
}

void StepTally::begin_pass() {
  end_pass();
  ++pass_;
  ++passes_in_step_;
  for (Entry& entry : entries_) entry.in_pass = false;
}

void StepTally::note_gradient(const Parameter& parameter) {
  Entry* entry = find(parameter);
  const at::Tensor& gradient = parameter.tensor.grad();
  if (entry == nullptr || !gradient.defined()) return;
  entry->has_gradient = entry->in_pass = true;
  if (passes_in_step_ == 1) entry->in_first_pass = true;
  // One that backward added to has one version more, and nobody else has touched it. A parameter
  // that a pass meets again (in a backward inside of backward) counts once.
  const auto version = static_cast<std::int64_t>(gradient._version());
  const bool is_sum = entry->gradient.lock().get() == gradient.unsafeGetTensorImpl() &&
                      version == entry->gradient_version + 1;
  if (!is_sum) entry->passes = 0;
  if (!is_sum || entry->last_pass != pass_) ++entry->passes;
  entry->gradient = WeakTensor(gradient.getIntrusivePtr());
  entry->gradient_version = version;
  entry->last_pass = pass_;
}

void StepTally::note_update(const std::vector<Parameter>& parameters) {
  for (const Parameter& parameter : parameters) {
    Entry* entry = find(parameter);
    if (entry == nullptr || !has_gradient_now(parameter)) continue;
    entry->has_gradient = true;
    ++entry->handed_over;
  }
}

void StepTally::note_rule(const std::vector<Parameter>& parameters) {
  for (const Parameter& parameter : parameters)
    if (Entry* entry = find(parameter); entry != nullptr && has_gradient_now(parameter))
      ++entry->given_to_rule;
}

void StepTally::note_change(const Parameter& parameter) {
  if (Entry* entry = find(parameter)) entry->changed = true;
}

void StepTally::end_pass() {
  if (passes_in_step_ < 2 || !unlike_first_pass_.empty()) return;
  const auto other = std::ranges::find_if(
      entries_, [](const Entry& entry) { return entry.in_pass != entry.in_first_pass; });
  if (other != entries_.end()) unlike_first_pass_ = other->name;
}

void StepTally::end_step(bool skipped) {
  end_pass();
  for (Entry& entry : entries_) {
    // A step that replays has no backward to be seen: its gradients are those of the one before.
    if (passes_in_step_ == 0) entry.has_gradient = entry.has_gradient || entry.had_gradient;
    entry.went_without = entry.went_without || !entry.has_gradient;
    entry.changed = entry.changed || entry.tensor._version() != entry.version;
  }
  if (!skipped && unlike_baseline_.empty()) find_differences();
}

std::vector<std::string> StepTally::without_gradient() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_)
    if (entry.went_without) names.push_back(entry.name);
  return names;
}

// Who is to blame follows from how far the gradient came: handed over by the schedule, given to the
// rule. Where nothing at all changed, a rule that was asked had its reason.
bool StepTally::lacks_update(const Entry& entry, bool changed_any) const {
  if (!entry.has_gradient || entry.changed) return false;
  if (entry.handed_over == 0) return !excused_.handing_over;
  return changed_any && !(entry.given_to_rule == 0 ? excused_.around_rule : excused_.rule);
}

bool StepTally::has_too_many(const Entry& entry) const {
  if (entry.handed_over > 1 && !excused_.handing_over) return true;
  return entry.given_to_rule > std::max(entry.handed_over, 1) && !excused_.around_rule;
}

void StepTally::find_differences() {
  const bool changed_any = std::ranges::any_of(entries_, &Entry::changed);
  if (std::ranges::none_of(entries_, &Entry::has_gradient) && !excused_.passes)
    unlike_baseline_ = "no parameter got a gradient in step " + std::to_string(step_);
  tell("got a gradient and no update",
       [&](const Entry& entry) { return lacks_update(entry, changed_any); });
  tell("were updated more than once", [&](const Entry& entry) { return has_too_many(entry); });
  tell("had the gradients of more than one pass through the batch added up",
       [&](const Entry& entry) {
         return !excused_.passes && entry.handed_over > 0 && entry.passes > micro_batches_;
       });
}

void StepTally::tell(const std::string& what, const std::function<bool(const Entry&)>& is_such) {
  const auto count = std::ranges::count_if(entries_, is_such);
  if (count == 0 || !unlike_baseline_.empty()) return;
  unlike_baseline_ = std::to_string(count) + " of " + std::to_string(entries_.size()) +
                     " trained parameters " + what + " in step " + std::to_string(step_) +
                     ", among them " + std::ranges::find_if(entries_, is_such)->name;
}

}  // namespace peakbench::worker

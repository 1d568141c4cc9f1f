#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "peakbench/observer.h"
#include "peakbench/recipe.h"
#include "peakbench/update_rule.h"

namespace peakbench::worker {

// The optimizer's state under its parameters' names, for the tracer.

class StateNames {
 public:
  explicit StateNames(const std::vector<Parameter>& parameters);

  // Names the state tensors that exist now, as `encoder.ln.weight.exp_avg`. To be asked wherever
  // state may have been made or moved: a name stays with the allocation, and does not follow the
  // values.
  void name(UpdateRule& rule, Observer& observer) const;
  // Only state of the parameters just updated, and state of no parameter. With the step fused into
  // backward this is called once a parameter, and makes no names of the others. Learns the names of
  // tensors that replace the model's parameters.
  void name(UpdateRule& rule, const std::vector<Parameter>& updated, Observer& observer);

 private:
  std::string name_of(const at::Tensor& parameter, const std::string& state) const;

  std::unordered_map<const at::TensorImpl*, std::string> owners_;
};

// What each step did to each trained parameter, whatever the values: did backward give it a
// gradient, was it updated from that, how often. The baseline hands every gradient to one update.

// Allowed differences of steps from the baseline's. A strategy that declares to train a different
// problem may make them if it has that part of the recipe: its reference does the same.
struct Departures {
  bool passes = false;        // step_runner: none with backward, or several that add up
  bool handing_over = false;  // schedule, step_runner, gradient hooks and transforms
  bool around_rule = false;   // update_rule_wrappers
  bool rule = false;          // update_rule
};

class StepTally {
 public:
  explicit StepTally(const std::vector<Parameter>& parameters);
  void excuse(const Departures& departures) { excused_ = departures; }

  void begin_step(std::int64_t micro_batches);
  void begin_pass();  // forward and backward of one micro-batch
  // Backward has the parameter's gradient. On the thread that runs it.
  void note_gradient(const Parameter& parameter);
  // Handed over by the schedule, before the update.
  void note_update(const std::vector<Parameter>& parameters);
  // Given to the recipe's own rule, inside of all wrappers. Others than the model's parameters are
  // passed over: a wrapper is free to make several of one.
  void note_rule(const std::vector<Parameter>& parameters);
  void note_change(const Parameter& parameter);
  // `skipped`: a gradient transform asked for no update.
  void end_step(bool skipped);

  // What the first step that differs does otherwise than the baseline; empty: nothing.
  const std::string& unlike_baseline() const { return unlike_baseline_; }
  // Parameters that some step gave no gradient to.
  std::vector<std::string> without_gradient() const;
  // A parameter that got a gradient in one pass and none in another pass of the same step; or
  // empty.
  const std::string& unlike_first_pass() const { return unlike_first_pass_; }

 private:
  using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  // Of the step that runs, but for the gradient, which may be older.
  struct Entry {
    std::string name;
    at::Tensor tensor;
    bool has_gradient = false, had_gradient = false;  // in this step, in the one before
    bool went_without = false;                        // of a gradient, in some step
    bool in_first_pass = false, in_pass = false;
    bool changed = false;
    std::int64_t version = 0;  // when the step began
    int handed_over = 0, given_to_rule = 0;
    // The gradient that is there, and of how many passes it is the sum.
    WeakTensor gradient;
    std::int64_t gradient_version = 0, last_pass = -1, passes = 0;
  };

  Entry* find(const Parameter& parameter);
  void end_pass();
  void find_differences();
  bool lacks_update(const Entry& entry, bool changed_any) const;
  bool has_too_many(const Entry& entry) const;
  // "K of N trained parameters WHAT in step S, among them NAME", where there are such.
  void tell(const std::string& what, const std::function<bool(const Entry&)>& is_such);

  Departures excused_;
  std::vector<Entry> entries_;
  std::unordered_map<const at::TensorImpl*, std::size_t> index_;
  std::int64_t micro_batches_ = 1, step_ = 0, pass_ = 0, passes_in_step_ = 0;
  std::string unlike_baseline_, unlike_first_pass_;
};

// Rules around others that tell the worker what goes through them.

class RuleAround : public UpdateRule {
 public:
  explicit RuleAround(std::shared_ptr<UpdateRule> inner) : inner_(std::move(inner)) {}
  void visit_state(const StateVisitor& visit) override { inner_->visit_state(visit); }
  void forget(const at::Tensor& parameter) override { inner_->forget(parameter); }

 protected:
  std::shared_ptr<UpdateRule> inner_;
};

// Names a rule's state as soon as it has updated, before what is around it moves the state on.
class NamedRule final : public RuleAround {
 public:
  NamedRule(std::shared_ptr<UpdateRule> inner, StateNames names)
      : RuleAround(std::move(inner)), names_(std::move(names)) {}

  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    inner_->update(parameters, grouping);
    names_.name(*inner_, parameters, *observer());
  }

 private:
  StateNames names_;  // learns the parameters' replacements at this depth
};

// The recipe's own rule, inside of all wrappers, as the tally sees it.
class TalliedRule final : public RuleAround {
 public:
  TalliedRule(std::shared_ptr<UpdateRule> inner, StepTally& tally)
      : RuleAround(std::move(inner)), tally_(tally) {}

  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    tally_.note_rule(parameters);
    inner_->update(parameters, grouping);
  }

 private:
  StepTally& tally_;  // the training's
};

}  // namespace peakbench::worker

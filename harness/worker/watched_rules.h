// Rules around others that tell the worker what goes through them.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "peakbench/observer.h"
#include "peakbench/update_rule.h"
#include "worker/state_names.h"
#include "worker/step_tally.h"

namespace peakbench::worker {

// Names a rule's state as soon as it has updated, before what is around it moves the state on.
class NamedRule final : public UpdateRule {
 public:
  NamedRule(std::shared_ptr<UpdateRule> inner, StateNames names)
      : inner_(std::move(inner)), names_(std::move(names)) {}

  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    inner_->update(parameters, grouping);
    names_.name(*inner_, parameters, *observer());
  }
  void visit_state(const StateVisitor& visit) override { inner_->visit_state(visit); }
  void forget(const at::Tensor& parameter) override { inner_->forget(parameter); }

 private:
  std::shared_ptr<UpdateRule> inner_;
  StateNames names_;  // learns what stands in for the parameters at this depth
};

// The recipe's own rule, inside of all wrappers, as the tally sees it.
class TalliedRule final : public UpdateRule {
 public:
  TalliedRule(std::shared_ptr<UpdateRule> inner, StepTally& tally)
      : inner_(std::move(inner)), tally_(tally) {}

  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    tally_.note_rule(parameters);
    inner_->update(parameters, grouping);
  }
  void visit_state(const StateVisitor& visit) override { inner_->visit_state(visit); }
  void forget(const at::Tensor& parameter) override { inner_->forget(parameter); }

 private:
  std::shared_ptr<UpdateRule> inner_;
  StepTally& tally_;  // the training's
};

}  // namespace peakbench::worker

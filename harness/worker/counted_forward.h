// What forward runs of a recipe, counted: whether all samples go through it is seen, too.
#pragma once

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "worker/contributions.h"
#include "worker/counting.h"
#include "worker/losses.h"

namespace peakbench::worker {

template <>
class Counting<LossHead> final : public Forwarding<LossHead> {
 public:
  Counting(std::shared_ptr<LossHead> inner, Contribution& contribution,
           Contributions& contributions)
      : Forwarding(std::move(inner), contribution), contributions_(contributions) {}

  at::Tensor loss(Model& model, const at::Tensor& hidden_states, const Batch& batch) override {
    const SamplesSeen seen(hidden_states);
    auto loss = count(contribution_, "loss",
                      [&] { return scalar(inner_->loss(model, hidden_states, batch)); });
    if (hidden_states.dim() > 0 && hidden_states.size(0) == batch.input.size(0))
      need_all(seen.in(loss), hidden_states.size(0));
    return loss;
  }

 private:
  void need_all(std::int64_t seen, std::int64_t samples) {
    if (seen >= samples) return;
    contributions_.note_unlike_baseline(contribution_.owner,
                                        "makes its loss of " + std::to_string(seen) + " of " +
                                            std::to_string(samples) + " samples");
  }

  Contributions& contributions_;
};

template <>
class Counting<BlockWrapper> final : public Forwarding<BlockWrapper> {
 public:
  Counting(std::shared_ptr<BlockWrapper> inner, Contribution& contribution,
           Contributions& contributions, Owner model)
      : Forwarding(std::move(inner), contribution),
        contributions_(contributions),
        model_(std::move(model)) {}
  std::vector<std::string> parts() const override {
    return call_plugin(contribution_.owner, "parts", [&] { return inner_->parts(); });
  }
  std::vector<at::Tensor> run(std::size_t index, std::size_t blocks, const BlockFunction& block,
                              const std::vector<at::Tensor>& inputs) override {
    return watched({index, ""}, block, inputs, [&](const BlockFunction& named) {
      return inner_->run(index, blocks, named, inputs);
    });
  }
  std::vector<at::Tensor> run_part(const std::string& part, std::size_t index, std::size_t blocks,
                                   const BlockFunction& function,
                                   const std::vector<at::Tensor>& inputs) override {
    return watched({index, part}, function, inputs, [&](const BlockFunction& named) {
      return inner_->run_part(part, index, blocks, named, inputs);
    });
  }

 private:
  using Place = std::pair<std::size_t, std::string>;  // a block, and a part of it or none

  template <typename Run>
  std::vector<at::Tensor> watched(const Place& place, const BlockFunction& block,
                                  const std::vector<at::Tensor>& inputs, Run&& run) {
    // What goes wrong inside the block is the model's, although a wrapper runs it. By value: the
    // wrapper may keep the function until backward.
    const auto runs = std::make_shared<BlockRuns>(inputs, place.second);
    const BlockFunction named = [block, runs, model = model_,
                                 &owner = contribution_.owner](const std::vector<at::Tensor>& x) {
      runs->note(x);
      return given_by(
          owner, "run", model, [&] { return runs->unlike(x); },
          [&] { return call_in_block(model, "block", [&] { return block(x); }); });
    };
    contribution_.calls.fetch_add(1, std::memory_order_relaxed);
    auto outputs = call_in_block(contribution_.owner, "run", [&] {
      auto given = run(named);
      need_tensors(given);
      return given;
    });
    runs->end();
    if (runs->left_out()) contribution_.left_block_out = true;
    if (met_.insert(place).second) need_all(*runs, place.first);
    if (at::GradMode::is_enabled() && trained_.insert(place).second)
      contributions_.watch(contribution_.owner, place.first, runs);
    return outputs;
  }

  static void need_tensors(const std::vector<at::Tensor>& outputs) {
    const auto defined = [](const at::Tensor& one) { return one.defined(); };
    if (outputs.empty() || !std::ranges::all_of(outputs, defined))
      throw std::logic_error("it must return what the block would: one tensor at least");
  }
  // The first time alone: later ones may be in backward, or replay what was captured.
  void need_all(const BlockRuns& runs, std::size_t index) {
    if (const auto missing = runs.missing(index); !missing.empty())
      contributions_.note_unlike_baseline(contribution_.owner, missing);
  }

  Contributions& contributions_;
  Owner model_;
  std::set<Place> met_, trained_;
};

}  // namespace peakbench::worker

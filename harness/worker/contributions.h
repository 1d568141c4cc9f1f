#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "peakbench/recipe.h"
#include "planning/manifest.h"
#include "worker/plugin_call.h"

namespace peakbench::worker {

// Is a block, or a part of one, run on all that its wrapper was given?

// One call of a wrapper. What the block is run on later, in backward, counts for its gradients
// alone.
//
// A block is run on samples: (B, ...) -> (b, ...), the rest of the shape as it was. A part may be
// run on slices of any dimension but the last, several times (a tiled MLP): its positions count.
class BlockRuns {
 public:
  // Of the wrapper: (B, ...) first. `part`: its name; empty: the block itself.
  BlockRuns(const std::vector<at::Tensor>& inputs, std::string part);
  void note(const std::vector<at::Tensor>& inputs);  // of the block
  void end() { is_over_ = true; }
  bool left_out() const { return calls_ == 0; }
  // "an input of [4, 5, 7] (it was given [4, 5, 48])" where the wrapper hands the block
  // something of another shape, the number of samples apart; else empty.
  std::string unlike(const std::vector<at::Tensor>& inputs) const;
  // The end of a sentence: "leaves block 3 out", "runs block 3 on 2 of 4 samples", "runs mlp of
  // block 3 on 96 of 128 positions". Empty if all were run, or if the block ran on another shape.
  std::string missing(std::size_t block) const;
  // The same once backward is over, of runs with autograd: "runs block 3 with autograd on 2 of 4
  // samples". Empty, too, where there was none: what it trains has no gradient then.
  std::string missing_gradients(std::size_t block) const;

 private:
  // How many samples, or positions; nullopt where the shape does not tell.
  std::optional<std::int64_t> amount_of(const std::vector<at::Tensor>& inputs) const;
  std::string named(std::size_t block) const;
  std::string in_words(std::size_t block, const char* how, std::int64_t seen) const;

  std::string part_;
  std::vector<std::int64_t> whole_shape_;
  std::int64_t whole_ = 0, seen_ = 0, with_autograd_ = 0, calls_ = 0;
  bool is_comparable_ = true, is_over_ = false;
};

// Each strategy's contributions to the recipe, compared with its manifest, and whether they were
// ever called.

// One thing that a strategy put into the recipe: what a slot holds, one entry of a list of
// wrappers, or a hook on gradients.
struct Contribution {
  Owner owner;
  std::string place;  // the manifest's word: "schedule", "block_wrappers"; "on_gradient" for a hook
  bool is_called = true;  // false of a number: there is nothing to call
  std::atomic<std::int64_t> calls{0};
  // An update-related object was called without gradients and changed no parameter. Such a call is
  // not counted in `calls`.
  std::atomic<bool> called_in_vain{false};
  std::atomic<bool> left_block_out{false};  // a block wrapper that did not run a block
  std::atomic<bool> skipped_update{false};  // a gradient transform that asked for none
};

class Contributions {
 public:
  // Compares the recipe before and after one strategy's `apply`. Throws PluginError: a change that
  // the manifest does not declare, a slot that was cleared, a wrapper that is null or that another
  // strategy added and this one removed. Throws NoEffect: what is declared and was not changed. The
  // first strategy, the baseline, fills every slot and owns it until another takes it.
  void take(const Owner& owner, const planning::Entry& manifest, const Recipe& before,
            const Recipe& after);

  // Who put it there; null for a recipe that was filled without take().
  Contribution* slot(const std::string& name);
  Contribution* wrapper(const std::string& list, const void* object);
  // The first that left a block out, or skipped an update; null where none did.
  const Contribution* first_that(std::atomic<bool> Contribution::*did) const;
  // The n-th of `freezing`, whose entries have no address.
  Contribution* freezing(std::size_t n);
  Contribution& add_hook(const Owner& owner);

  // Does the manifest of this strategy say so?
  bool has_capability(const Owner& owner, const std::string& capability) const;
  bool has_capability(const std::string& capability) const;  // some strategy of the stack

  // Throws NoEffect that names the first contribution that was never called in `steps` steps.
  // `runner_updates`: the step runner changes the parameters itself, so the baseline's rule is not
  // needed. A strategy that replaced or wrapped that rule had no effect.
  void need_calls(std::int64_t steps, bool runner_updates) const;

  const std::string& baseline() const { return baseline_; }  // the first's id
  // A hook or transform left an invalid gradient. Records it, in case the next plugin fails on it.
  // Not while another thread asks.
  void note_misfit(const Parameter& parameter, const Owner& owner, const char* call);
  Call who_left_misfit(const Parameter& parameter) const;  // without an owner: unknown
  // Has a strategy that trains a different problem something there that is in force: a slot, or an
  // entry of a list?
  bool departs_at(const std::string& place) const;

  // What the strategy was seen to do otherwise than the baseline: "X SENTENCE". Kept where X does
  // not say so itself by its promise (different_problem); the first stays. Not while backward runs.
  void note_unlike_baseline(const Owner& owner, const std::string& sentence);
  // The first run of a block, or of a part of one, with autograd: asked once backward is over.
  void watch(const Owner& owner, std::size_t block, std::shared_ptr<const BlockRuns> runs);
  // The first that was noted, or what is known from the calls; empty where nothing is.
  std::string unlike_baseline() const;

 private:
  Contribution& add(const Owner& owner, const std::string& place);
  bool promises(const Owner& owner) const;
  bool in_force(const Contribution& contribution) const;
  [[noreturn]] static void refuse_idle(const Contribution& contribution, std::int64_t steps);
  void need_some_update(const Contribution& skipping, std::int64_t steps) const;
  void take_slots(const Owner& owner, const planning::Entry& manifest, const Recipe& before,
                  const Recipe& after);
  void take_wrappers(const Owner& owner, const planning::Entry& manifest, const Recipe& before,
                     const Recipe& after);

  std::deque<Contribution> contributions_;  // addresses stay
  std::map<std::string, Contribution*> slots_;
  std::map<std::pair<std::string, const void*>, Contribution*> wrappers_;
  std::vector<Contribution*> freezing_;
  std::map<std::string, std::vector<std::string>> capabilities_;  // by id
  std::map<std::string, std::string> promises_;                   // by id
  std::map<const at::TensorImpl*, Call> misfits_;                 // by parameter
  std::string baseline_;
  std::string unlike_baseline_;
  struct Watched {
    const Owner& owner;  // a Contribution's
    std::size_t block;
    std::shared_ptr<const BlockRuns> runs;
  };
  std::vector<Watched> watched_;
};

}  // namespace peakbench::worker

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "peakbench/model.h"
#include "peakbench/observer.h"
#include "recording/device.h"
#include "recording/recorder.h"
#include "records/job.h"
#include "worker/contributions.h"
#include "worker/plugin_call.h"
#include "worker/recipe_training.h"

namespace peakbench::worker {

// Reports of models and strategies about their position, passed to the recorder.

class RecordObserver final : public Observer {
 public:
  explicit RecordObserver(recording::Recorder& recorder) : recorder_(recorder) {}  // keeps it

  // Gives every module of the tree its path; modules entered before, or unknown, have none.
  void name_modules(const torch::nn::Module& root);

  void enter_module(const torch::nn::Module& module) override;
  void exit_module() override { recorder_.exit_module(); }
  void enter_update() override { recorder_.enter_update(); }
  void exit_update() override { recorder_.exit_update(); }
  void enter_recompute() override { recorder_.enter_recompute(); }
  void exit_recompute() override { recorder_.exit_recompute(); }
  void name_storage(const at::Tensor& tensor, StorageRole role, const std::string& name) override;

 private:
  recording::Recorder& recorder_;
  std::unordered_map<const torch::nn::Module*, std::int32_t> modules_;
};

// The batch of each step: one for all of them, or one after the other.

class Batches {
 public:
  // Makes the first. `changes`: the model's manifest declares `changes_batch`. With an observer,
  // names the tensors of each batch to it. Throws PluginFailure where the model's code does, or
  // makes what is no batch. The model must outlive this.
  Batches(Model& model, Owner model_owner, const BatchShape& shape, std::uint64_t seed,
          bool changes, RecordObserver* observer);

  bool changes() const { return changes_; }
  // Of step 0, 1, ..., asked for in this order. The one before is given up. Throws PluginError
  // where the model makes batches that its manifest does not declare, or none although it does.
  const Batch& of_step(std::int64_t step);
  // So far, the input of some step had another shape than the first one's.
  bool shapes_differ() const { return shapes_differ_; }

 private:
  std::optional<Batch> make_next(std::int64_t step);
  void check(const Batch& batch) const;
  void name() const;

  Model& model_;
  Owner owner_;
  BatchShape shape_;
  std::uint64_t seed_;
  bool changes_, shapes_differ_ = false;
  RecordObserver* observer_;
  Batch batch_;
  std::vector<std::int64_t> first_shape_;
};

// What every job starts with: a model built on a device, the recipe filled, a batch.

struct Setup {
  std::unique_ptr<Model> model;
  std::unique_ptr<Contributions> contributions;  // outlives the training
  std::unique_ptr<RecipeTraining> training;
  std::unique_ptr<Batches> batches;
  std::optional<records::Period> period;  // the stack's longest
  std::string base_weights;               // way_of_building(); empty: as the model has them
  std::vector<std::pair<records::PluginUse, Options>> options;  // of the model and every strategy
};

// The device named by the job. Throws ConfigError where this machine has no such device.
std::unique_ptr<recording::Device> make_device(const records::Job& job);

// Builds model and recipe from the seed, into `setup`, which says how far it came where memory ran
// out. With an observer, names modules, parameters, buffers and input to it.
// Throws PluginError or NoEffect where a strategy does other than its manifest says.
void make_setup(const records::Job& job, const recording::Device& device, RecordObserver* observer,
                Setup& setup);

// After the steps. Throws NoEffect: a part of the recipe that was never called, an option that was
// chosen and never read.
void need_effects(const Setup& setup, std::int64_t steps);

}  // namespace peakbench::worker

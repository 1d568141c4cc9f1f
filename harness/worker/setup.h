// What every job starts with: a model built on a device, the recipe filled, a batch.
#pragma once

#include <memory>
#include <string>

#include "device/device.h"
#include "result/job.h"
#include "worker/batches.h"
#include "worker/contributions.h"
#include "worker/recipe_training.h"
#include "worker/record_observer.h"

namespace peakbench::worker {

struct Setup {
  std::unique_ptr<Model> model;
  std::unique_ptr<Contributions> contributions;  // outlives the training
  std::unique_ptr<RecipeTraining> training;
  std::unique_ptr<Batches> batches;
  std::optional<result::Period> period;  // the stack's longest
  std::string base_weights;              // way_of_building(); empty: as the model has them
  std::vector<std::pair<result::PluginUse, Options>> options;  // of the model and every strategy
};

// The device named by the job. Throws ConfigError where this machine has no such device.
std::unique_ptr<device::Device> make_device(const result::Job& job);

// Builds model and recipe from the seed, into `setup`, which says how far it came where memory ran
// out. With an observer, names modules, parameters, buffers and input to it.
// Throws PluginError or NoEffect where a strategy does other than its manifest says.
void make_setup(const result::Job& job, const device::Device& device, RecordObserver* observer,
                Setup& setup);

// After the steps. Throws NoEffect: a part of the recipe that was never called, an option that was
// chosen and never read.
void need_effects(const Setup& setup, std::int64_t steps);

}  // namespace peakbench::worker

#include "worker/setup.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/errors.h"
#include "base/nearest.h"
#include "peakbench/errors.h"
#include "peakbench/unfilled.h"
#include "recording/dtype_words.h"
#include "records/axes.h"
#include "worker/counted_recipe.h"
#include "worker/losses.h"
#include "worker/plugin_loader.h"

namespace peakbench::worker {
namespace {

trace::Role role_of(StorageRole role) {
  using trace::Role;
  constexpr std::array kRoles{Role::kParameter,      Role::kBuffer, Role::kGradient,
                              Role::kOptimizerState, Role::kInput,  Role::kKept};
  return kRoles.at(static_cast<std::size_t>(role));
}

}  // namespace

void RecordObserver::name_modules(const torch::nn::Module& root) {
  modules_[&root] = recorder_.intern_module("");
  for (const auto& item : root.named_modules(std::string(), /*include_self=*/false))
    modules_[item.value().get()] = recorder_.intern_module(item.key());
}

void RecordObserver::enter_module(const torch::nn::Module& module) {
  const auto found = modules_.find(&module);
  recorder_.enter_module(found == modules_.end() ? trace::kNone : found->second);
}

void RecordObserver::name_storage(const at::Tensor& tensor, StorageRole role,
                                  const std::string& name) {
  recorder_.name_storage(tensor, role_of(role), name);
}

namespace {

// Throws std::logic_error. `name` is the tensor's, `samples` the input's.
void check_named(const NamedTensor& one, std::int64_t samples) {
  if (one.name.empty()) throw std::logic_error("a tensor of the batch has no name");
  const std::string name = "the batch's tensor \"" + one.name + "\" ";
  if (!one.tensor.defined()) throw std::logic_error(name + "is undefined; leave it out");
  if (!one.per_sample || (one.tensor.dim() > 0 && one.tensor.size(0) == samples)) return;
  throw std::logic_error(name +
                         (one.tensor.dim() == 0 ? "is a scalar"
                                                : "has " + std::to_string(one.tensor.size(0)) +
                                                      " along its first dimension") +
                         ", and the batch has " + std::to_string(samples) +
                         " samples; say per_sample = false of one that is not split with them");
}

}  // namespace

Batches::Batches(Model& model, Owner model_owner, const BatchShape& shape, std::uint64_t seed,
                 bool changes, RecordObserver* observer)
    : model_(model),
      owner_(std::move(model_owner)),
      shape_(shape),
      seed_(seed),
      changes_(changes),
      observer_(observer) {
  // Whatever the stack's transforms have drawn: every stack of a seed trains on one batch.
  at::manual_seed(seed_);
  batch_ = call_plugin(owner_, "make_batch", [&] {
    Batch made = model_.make_batch(shape_);
    check(made);
    return made;
  });
  first_shape_ = batch_.input.sizes().vec();
  name();
}

const Batch& Batches::of_step(std::int64_t step) {
  if (step == 0 || (!changes_ && step > 1)) return batch_;
  const bool gives_up_first = changes_ && !model_.keeps_batch_until_next();
  if (gives_up_first) batch_ = {};
  auto next = make_next(step);
  if (next && !changes_)
    refuse(owner_,
           "makes another batch for the second step, which its manifest does not "
           "declare: put \"changes_batch\" into \"facts\" of plugin.json");
  if (!next && changes_)
    refuse(owner_, "declares changes_batch and makes no batch for step " +
                       std::to_string(step + 1) + ": next_batch returned none");
  if (!next) return batch_;
  batch_ = std::move(*next);
  shapes_differ_ = shapes_differ_ || batch_.input.sizes().vec() != first_shape_;
  name();
  return batch_;
}

std::optional<Batch> Batches::make_next(std::int64_t step) {
  // Whatever the steps have drawn. One that makes no batches draws as if this were not here.
  if (changes_) at::manual_seed(seed_ + static_cast<std::uint64_t>(step));
  return call_plugin(owner_, "next_batch", [&] {
    auto made = model_.next_batch(step, shape_);
    if (made) check(*made);
    return made;
  });
}

void Batches::check(const Batch& batch) const {
  if (!batch.input.defined() || batch.input.dim() == 0)
    throw std::logic_error("the batch has no input with a first dimension of samples");
  const std::int64_t samples = batch.input.size(0);
  if (!first_shape_.empty() && samples != first_shape_[0])
    throw std::logic_error("it makes " + std::to_string(samples) +
                           " samples, and the first batch has " + std::to_string(first_shape_[0]) +
                           "; lengths may differ from step to step, the number of samples may not");
  std::set<std::string> names{"input", "target"};
  for (const NamedTensor& one : batch.named) {
    check_named(one, samples);
    if (!names.insert(one.name).second)
      throw std::logic_error("the batch has two tensors of the name \"" + one.name + "\"");
  }
}

void Batches::name() const {
  if (observer_ == nullptr) return;
  observer_->name_storage(batch_.input, StorageRole::kInput, "input");
  observer_->name_storage(batch_.target, StorageRole::kInput, "target");
  for (const NamedTensor& one : batch_.named)
    observer_->name_storage(one.tensor, StorageRole::kInput, one.name);
}

namespace {

// Weights have fewer dtypes than there are words for: those of the axis.
at::ScalarType weights_dtype(const std::string& word) {
  const auto& axis = records::row_of(records::Axis::kDtype);
  records::Setting setting;
  axis.parse(axis.name, word, axis, setting);
  return recording::dtype_from_word(setting.dtype).value();
}

// On the CPU. A training of what happened to be there has its peak, and losses that mean nothing.
void need_filled(const torch::nn::Module& module, const Owner& owner) {
  for (const auto& item : module.named_parameters())
    if (is_unfilled(item.value()))
      refuse(owner, "has never initialised its parameter " + item.key() +
                        ": nn:: layers make uninitialised memory, which the model fills (nn.h; "
                        "fill_normal in initialise.h)");
}

// With the options of its manifest: others may make another number.
void need_parameter_count(const torch::nn::Module& module, const planning::Entry& manifest,
                          const records::PluginUse& use) {
  if (!use.selection.options.empty() || manifest.parameters == 0) return;
  std::set<const at::TensorImpl*> met;  // what modules share counts once
  std::int64_t count = 0;
  for (const auto& item : module.named_parameters())
    if (met.insert(item.value().unsafeGetTensorImpl()).second) count += item.value().numel();
  if (count != manifest.parameters)
    throw PluginError(use.path + ": " + manifest.id + " has " + std::to_string(count) +
                      " parameters, and its manifest says " + std::to_string(manifest.parameters) +
                      ": put " + std::to_string(count) + " into \"parameters\" of plugin.json");
}

// A rule that is for the parameters of blocks finds them by these.
void need_block_paths(Model& model, const Owner& owner) {
  std::vector<std::string> modules;
  for (const auto& item : model.module().named_modules()) modules.push_back(item.key());
  std::set<std::string> met;
  for (const std::string& path : model.block_paths()) {
    if (std::ranges::find(modules, path) == modules.end())
      refuse(owner, "names " + path + " in block_paths(), which is not in its module tree" +
                        suggestion(path, modules));
    if (!met.insert(path).second) refuse(owner, "names " + path + " twice in block_paths()");
  }
}

void name_weights(const torch::nn::Module& module, RecordObserver& observer) {
  for (const auto& item : module.named_parameters())
    observer.name_storage(item.value(), StorageRole::kParameter, item.key());
  for (const auto& item : module.named_buffers())
    observer.name_storage(item.value(), StorageRole::kBuffer, item.key());
}

// What `apply` must leave alone.
std::vector<std::pair<std::string, bool>> trainable(Model& model) {
  std::vector<std::pair<std::string, bool>> found;
  for (const auto& item : model.module().named_parameters())
    found.emplace_back(item.key(), item.value().requires_grad());
  return found;
}

void apply_strategy(const records::PluginUse& use, Recipe& recipe, Setup& setup) {
  const LoadedStrategy loaded = load_strategy(use);
  const Owner owner = owner_of(use);
  setup.options.push_back({use, loaded.context.options});
  const auto steps = planning::period_of(loaded.manifest, use.options);
  if (loaded.manifest.period && (!setup.period || steps > setup.period->steps))
    setup.period = {owner.id, steps};
  const Recipe before = recipe;
  const auto model_before = trainable(*setup.model);
  call_plugin(owner, "apply", [&] { loaded.apply(loaded.context, recipe, *setup.model); });
  if (trainable(*setup.model) != model_before)
    refuse(owner,
           "changes the model's parameters, or which of them are trained, in apply; "
           "put a ModelTransform into a slot, or a function into `freezing`");
  setup.contributions->take(owner, loaded.manifest, before, recipe);
}

bool has_fact(const planning::Entry& model, const std::string& fact) {
  return std::ranges::find(model.facts, fact) != model.facts.end();
}

// As the plan has it; a job may be anybody's.
void need_same_steps(const planning::Entry& model, const Contributions& contributions) {
  if (!contributions.has_capability("replays_steps")) return;
  for (const char* fact : {"changes_batch", "decides_on_host"})
    if (has_fact(model, fact))
      throw Unsupported(model.id + " declares " + fact +
                        ", and a strategy of the stack repeats what the first step did");
}

// As the plan has it, of manifests that say so; a job may be anybody's.
void need_parts_that_add_up(const planning::Entry& manifest, Model& model) {
  if (manifest.loss == "whole_batch")
    throw Unsupported("the loss of " + manifest.id +
                      " is of the whole batch, which micro-batches do not add up to");
  if (manifest.loss == "per_token" && !model.output_head())
    throw Unsupported("the loss of " + manifest.id +
                      " is a mean over tokens, and no output_head() says which of them count");
}

}  // namespace

std::unique_ptr<recording::Device> make_device(const records::Job& job) {
  if (job.threads > 0) at::set_num_threads(static_cast<int>(job.threads));
  auto device = recording::make_device({records::device_from(job.device), job.device_options,
                                        job.allocator, job.memory_limit_bytes});
  check_loaded_libtorch();
  return device;
}

void make_setup(const records::Job& job, const recording::Device& device, RecordObserver* observer,
                Setup& setup) {
  at::manual_seed(job.seed);
  const auto options =
      at::TensorOptions().device(device.torch_device()).dtype(weights_dtype(job.dtype));
  LoadedModel loaded = build_model(job, options);
  setup.model = std::move(loaded.model);
  need_filled(setup.model->module(), owner_of(job.model_plugin));
  need_parameter_count(setup.model->module(), loaded.manifest, job.model_plugin);
  need_block_paths(*setup.model, owner_of(job.model_plugin));
  if (changes_base_weights(job)) setup.base_weights = way_of_building(setup.model->module());
  setup.options.push_back({job.model_plugin, loaded.options});
  for (const auto& item : setup.model->module().named_parameters())
    item.value().set_requires_grad(true);
  // Strategies may replace them, and run out of memory over it.
  if (observer != nullptr) name_weights(setup.model->module(), *observer);

  setup.contributions = std::make_unique<Contributions>();
  Recipe recipe;
  for (const records::PluginUse& use : job.strategy_plugins) apply_strategy(use, recipe, setup);
  if (recipe.micro_batches > 1) {
    micro_batch_sizes(job.batch_size, recipe.micro_batches);
    need_parts_that_add_up(loaded.manifest, *setup.model);
  }
  need_same_steps(loaded.manifest, *setup.contributions);
  const Owner owner = owner_of(job.model_plugin);
  setup.training = std::make_unique<RecipeTraining>(
      *setup.model, counted(std::move(recipe), *setup.contributions, owner),
      setup.contributions.get(), owner);
  if (loaded.manifest.loss == "per_token") setup.training->share_by_tokens();
  const BatchShape shape{job.batch_size, job.sequence_length.value_or(0)};
  setup.batches = std::make_unique<Batches>(*setup.model, owner, shape, job.seed,
                                            has_fact(loaded.manifest, "changes_batch"), observer);
  if (observer == nullptr) return;
  observer->name_modules(setup.model->module());
  name_weights(setup.model->module(), *observer);
}

void need_effects(const Setup& setup, std::int64_t steps) {
  setup.training->need_updates();
  setup.contributions->need_calls(steps, setup.training->runner_updates());
  for (const auto& [use, options] : setup.options) need_options_read(use, options);
}

}  // namespace peakbench::worker

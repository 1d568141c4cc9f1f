#include "worker/session.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "peakbench/errors.h"
#include "result/errors.h"
#include "worker/plugin_loader.h"
#include "worker/progress.h"

namespace peakbench::worker {
namespace {

at::ScalarType dtype_from(const std::string& dtype) {
  if (dtype == "fp32") return at::kFloat;
  if (dtype == "bf16") return at::kBFloat16;
  throw ConfigError("dtype '" + dtype + "' is not known: fp32 or bf16");
}

void name_storages(const Session& session, device::Recorder& recorder) {
  const torch::nn::Module& module = session.model->module();
  recorder.name_modules(module);
  for (const auto& item : module.named_parameters()) {
    recorder.name_storage(item.value(), StorageRole::kParameter, item.key());
  }
  for (const auto& item : module.named_buffers()) {
    recorder.name_storage(item.value(), StorageRole::kBuffer, item.key());
  }
  recorder.name_storage(session.batch.input, StorageRole::kInput, "input");
  recorder.name_storage(session.batch.target, StorageRole::kInput, "target");
}

}  // namespace

std::unique_ptr<device::Device> make_device(const result::Job& job) {
  if (job.threads > 0) at::set_num_threads(static_cast<int>(job.threads));
  if (job.device == "cpu") return device::make_cpu_device(job.memory_limit_bytes);
  return device::make_cuda_device(job.device, job.device_options);
}

Session make_session(const result::Job& job, const device::Device& device,
                     device::Recorder* recorder) {
  Session session;
  at::manual_seed(job.seed);
  const auto options =
      at::TensorOptions().device(device.torch_device()).dtype(dtype_from(job.dtype));
  session.model = make_model(job.model, options);
  for (const auto& item : session.model->module().named_parameters())
    item.value().set_requires_grad(true);

  Recipe recipe;
  for (const result::PluginUse& use : job.strategies) apply_strategy(use, recipe, *session.model);
  session.training = std::make_unique<RecipeTraining>(*session.model, std::move(recipe));
  session.batch = session.model->make_batch({job.batch_size, job.sequence_length.value_or(0)});
  if (recorder != nullptr) name_storages(session, *recorder);
  return session;
}

}  // namespace peakbench::worker

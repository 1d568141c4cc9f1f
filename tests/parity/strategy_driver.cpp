// Runs a job's steps with the worker's own recipe and a byte counter of the tests' own, and tells
// bytes and numbers: losses, first-step gradients, parameters after the last step.
//
//   strategy_driver JOB [OPTION...]
//   strategy_driver --serve    a JSON list of such arguments a line: each is run in a fork, which
//                              saves loading LibTorch again; its exit code is told in a line
#include <ATen/ATen.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>

#include "byte_counter.h"
#include "peakbench/safetensors.h"
#include "records/job.h"
#include "safetensors_writer.h"
#include "trace/lifetimes.h"
#include "worker/engine.h"
#include "worker/plugin_loader.h"
#include "worker/recipe_training.h"

namespace peakbench::test {
namespace {

struct Arguments {
  std::string job, weights, input, save, changes, told;
};

// `given` as CLI11 takes it: the last first.
Arguments parse(std::vector<std::string> given) {
  Arguments arguments;
  CLI::App app{"The training steps of a job, as the harness runs them"};
  app.add_option("JOB", arguments.job, "job file")->required();
  app.add_option("--weights", arguments.weights, "safetensors file with every parameter");
  app.add_option("--input", arguments.input, "safetensors file with `input` and perhaps `target`");
  app.add_option("--save", arguments.save, "safetensors file for gradients and parameters");
  app.add_option("--changes", arguments.changes, "text file for every change of memory");
  app.add_option("--told", arguments.told, "file for what is told, or why nothing is")->required();
  try {
    app.parse(given);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return arguments;
}

// The loader of weights, used on a module that holds the batch.
void load_batch(const Batch& batch, const std::string& path) {
  struct Holder : torch::nn::Module {
  } holder;
  holder.register_parameter("input", batch.input, /*requires_grad=*/false);
  if (batch.target.defined()) holder.register_parameter("target", batch.target, false);
  load_safetensors(holder, path);
}

// Copies each parameter's gradient when it is first complete, before any update.
class FirstGradients : public GradientHook {
 public:
  explicit FirstGradients(std::map<std::string, at::Tensor>& kept) : kept_(kept) {}

  void on_gradient(const Parameter& parameter, const Pass& pass) override {
    if (!pass.last_micro_batch || kept_.contains("grad." + parameter.name)) return;
    kept_.emplace("grad." + parameter.name, parameter.tensor.grad().clone());
  }

 private:
  std::map<std::string, at::Tensor>& kept_;
};

nlohmann::json run(const Arguments& arguments) {
  const auto job = records::job_from_json(nlohmann::json::parse(std::ifstream(arguments.job)));
  worker::install_engine();
  at::manual_seed(job.seed);
  ByteCounter& counter = ByteCounter::install();
  const auto loaded =
      worker::build_model(job, at::TensorOptions(job.dtype == "bf16" ? at::kBFloat16 : at::kFloat));
  const auto& model = loaded.model;
  for (const auto& item : model->module().named_parameters()) item.value().set_requires_grad(true);
  Recipe recipe;
  for (const auto& use : job.strategy_plugins) {
    const auto strategy = worker::load_strategy(use);
    strategy.apply(strategy.context, recipe, *model);
  }
  std::map<std::string, at::Tensor> numbers;
  if (!arguments.save.empty()) {
    recipe.gradient_hooks.insert(
        recipe.gradient_hooks.begin(),
        {GradientPlace::kReduce, std::make_shared<FirstGradients>(numbers)});
  }
  worker::RecipeTraining training(*model, std::move(recipe));
  const Batch batch = model->make_batch({job.batch_size, job.sequence_length.value_or(0)});
  if (!arguments.weights.empty()) load_safetensors(model->module(), arguments.weights);
  if (!arguments.input.empty()) load_batch(batch, arguments.input);

  nlohmann::json result = {{"base_bytes", counter.alive_bytes()},
                           {"phases", nlohmann::json::array()}};
  std::string phase;
  const auto end_phase = [&] {
    if (!phase.empty()) result["phases"].push_back({phase, counter.peak_bytes()});
  };
  at::manual_seed(job.seed);  // as the oracle: what steps draw does not depend on building
  for (std::int64_t step = 0; step < job.steps; ++step) {
    const at::Tensor loss = training.step(batch, [&](trace::Phase next) {
      end_phase();
      counter.begin_phase(phase = trace::to_string(next));
    });
    result["losses"].push_back(loss.item<double>());
  }
  end_phase();
  if (!arguments.changes.empty()) counter.write_changes(arguments.changes);
  if (!arguments.save.empty()) {
    for (const auto& item : model->module().named_parameters()) {
      numbers["after." + item.key()] = item.value().detach();
    }
    for (const auto& item : model->module().named_buffers()) {
      if (item.key().find("running_") == std::string::npos) continue;
      numbers["running." + item.key()] = item.value();
    }
    write_safetensors(arguments.save, numbers);
  }
  return result;
}

int run_and_tell(std::vector<std::string> given) {
  std::reverse(given.begin(), given.end());
  const auto arguments = parse(given);
  std::ofstream told(arguments.told);
  try {
    told << run(arguments).dump(1) << '\n';
    return 0;
  } catch (const std::exception& error) {
    told << error.what() << '\n';
    return 1;
  }
}

int serve() {
  for (std::string line; std::getline(std::cin, line);) {
    const pid_t child = fork();
    if (child == 0) std::exit(run_and_tell(nlohmann::json::parse(line)));
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 1;
    std::cout << (WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace peakbench::test

int main(int argc, char** argv) {
  const std::vector<std::string> given(argv + 1, argv + argc);
  return given == std::vector<std::string>{"--serve"} ? peakbench::test::serve()
                                                      : peakbench::test::run_and_tell(given);
}

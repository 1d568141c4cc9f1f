// Runs one forward, loss and backward of a model's plugin on the CPU, without the harness, and
// tells its bytes and its numbers. What the oracle's scripts do in Python.
#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "byte_counter.h"
#include "peakbench/safetensors.h"
#include "plugin_under_test.h"
#include "safetensors_writer.h"

namespace peakbench::test {
namespace {

constexpr std::uint64_t kSeed = 0;  // the oracle's, set before the step: what dropout draws

struct Arguments {
  std::string library, manifest, id, dtype = "fp32", mode = "train", input, save, changes;
  std::map<std::string, std::string> options;
  BatchShape shape;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  std::vector<std::string> options;
  CLI::App app{"One training step's forward and backward of a model's plugin"};
  app.add_option("--plugin", arguments.library)->required();
  app.add_option("--manifest", arguments.manifest)->required();
  app.add_option("--model", arguments.id)->required();
  app.add_option("--option", options, "NAME=VALUE; repeatable");
  app.add_option("--dtype", arguments.dtype)->check(CLI::IsMember({"fp32", "bf16"}));
  app.add_option("--mode", arguments.mode, "frozen: matrices but embeddings are not trained")
      ->check(CLI::IsMember({"train", "frozen", "no-grad"}));
  app.add_option("--batch", arguments.shape.batch_size);
  app.add_option("--seq", arguments.shape.sequence_length);
  app.add_option("--input", arguments.input, "safetensors file with `input` and perhaps `target`");
  app.add_option("--save", arguments.save, "safetensors file for output, loss, gradients");
  app.add_option("--changes", arguments.changes, "text file for every change of memory");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  for (const std::string& option : options) {
    const std::size_t equals = option.find('=');
    arguments.options[option.substr(0, equals)] = option.substr(equals + 1);
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

// What the reference returns beside the loss: logits. Undefined where the interface shows none.
at::Tensor output_of(Model& model, const at::Tensor& hidden_states) {
  if (const auto head = model.output_head()) return head->logits(hidden_states);
  for (const NamedLinear& linear : model.linears()) {
    if (linear.part == "output") return linear.layer->base_forward(hidden_states);
  }
  return {};
}

std::map<std::string, at::Tensor> numbers(Model& model, const Batch& batch,
                                          const at::Tensor& loss) {
  std::map<std::string, at::Tensor> tensors{{"loss", loss.detach()}};
  for (const auto& item : model.module().named_parameters()) {
    tensors["grad." + item.key()] = item.value().grad();
  }
  const at::NoGradGuard no_grad;
  at::manual_seed(kSeed);
  const at::Tensor output = output_of(model, model.hidden_states(batch));
  if (output.defined()) tensors["output"] = output;
  return tensors;
}

void freeze_matrices(Model& model) {
  for (const auto& item : model.module().named_parameters()) {
    const bool matrix = item.value().dim() == 2 && item.key().find("embed") == std::string::npos;
    if (matrix) item.value().set_requires_grad(false);
  }
}

nlohmann::json run(const Arguments& arguments) {
  const PluginUnderTest plugin(arguments.library, arguments.manifest);
  ByteCounter& counter = ByteCounter::install();
  const std::unique_ptr<Model> model =
      plugin.make({arguments.id, plugin.options(arguments.id, arguments.options),
                   at::TensorOptions(arguments.dtype == "bf16" ? at::kBFloat16 : at::kFloat)});
  const Batch batch = model->make_batch(arguments.shape);
  if (!arguments.input.empty()) load_batch(batch, arguments.input);

  nlohmann::json result = {{"base_bytes", counter.alive_bytes()}};
  for (const auto& item : model->module().named_parameters()) {
    result["parameters"].push_back(item.key());
  }
  if (arguments.mode == "frozen") freeze_matrices(*model);
  const at::AutoGradMode grad_mode(arguments.mode != "no-grad");
  at::manual_seed(kSeed);
  counter.begin_phase("forward");
  at::Tensor loss = model->loss(model->hidden_states(batch), batch);
  if (const at::Tensor more = model->auxiliary_loss(batch); more.defined()) loss = loss + more;
  result["phases"]["forward"] = counter.peak_bytes();
  if (loss.requires_grad()) {
    counter.begin_phase("backward");
    loss.backward();
    result["phases"]["backward"] = counter.peak_bytes();
  }
  result["end_bytes"] = counter.alive_bytes();

  result["loss"] = loss.item<double>();
  if (!arguments.changes.empty()) counter.write_changes(arguments.changes);
  if (!arguments.save.empty()) write_safetensors(arguments.save, numbers(*model, batch, loss));
  return result;
}

}  // namespace
}  // namespace peakbench::test

int main(int argc, char** argv) {
  try {
    std::cout << peakbench::test::run(peakbench::test::parse(argc, argv)).dump(1) << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}

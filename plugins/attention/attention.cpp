// One kernel for scaled dot product attention instead of PyTorch's choice, as
// torch.nn.attention.sdpa_kernel. Source: torch/nn/attention/__init__.py
#include <ATen/Context.h>

#include <string_view>

#include "peakbench/plugin.h"

namespace peakbench {
namespace {

// Which kernels PyTorch may choose. A property of the process.
struct Allowed {
  bool math = false, flash = false, efficient = false, cudnn = false, overrideable = false;

  static Allowed now() {
    const at::Context& context = at::globalContext();
    return {context.userEnabledMathSDP(), context.userEnabledFlashSDP(),
            context.userEnabledMemEfficientSDP(), context.userEnabledCuDNNSDP(),
            context.userEnabledOverrideableSDP()};
  }
  static Allowed only(const std::string& backend) {
    return {.math = backend == "math",
            .flash = backend == "flash",
            .efficient = backend == "efficient",
            .cudnn = backend == "cudnn"};
  }
  void set() const {
    at::Context& context = at::globalContext();
    context.setSDPUseMath(math);
    context.setSDPUseFlash(flash);
    context.setSDPUseMemEfficient(efficient);
    context.setSDPUseCuDNN(cudnn);
    context.setSDPUseOverrideable(overrideable);
  }
};

// Around the whole step: a block that runs again in backward takes the same kernel.
class OneBackend : public StepContext {
 public:
  explicit OneBackend(const std::string& backend) : allowed_(Allowed::only(backend)) {}

  std::shared_ptr<void> enter_step() override {
    const Allowed before = Allowed::now();
    allowed_.set();
    return std::shared_ptr<void>(nullptr, [before](void*) { before.set(); });
  }

 private:
  Allowed allowed_;
};

// A kernel that cannot do what a model asks for is no crash of the model.
class SaysUnsupported : public BlockWrapper {
 public:
  explicit SaysUnsupported(std::string backend) : backend_(std::move(backend)) {}

  std::vector<at::Tensor> run(std::size_t index, std::size_t count, const BlockFunction& block,
                              const std::vector<at::Tensor>& inputs) override {
    try {
      return block(inputs);
    } catch (const std::exception& error) {
      if (!says_no_kernel(error.what())) throw;
      throw Unsupported("attention,backend=" + backend_ +
                        ": PyTorch's kernel cannot do this model's attention in this dtype on this "
                        "device (worker.log has its reasons); use another backend");
    }
  }

 private:
  static bool says_no_kernel(std::string_view what) {
    return what.find("No available kernel") != std::string_view::npos ||
           what.find("No viable backend") != std::string_view::npos;
  }

  std::string backend_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model& model) {
  const std::string& backend = context.options.string("backend");
  if (model.module().parameters().front().is_cpu() && backend != "math" && backend != "flash")
    throw Unsupported("attention,backend=" + backend +
                      " is a kernel for cards; on the CPU there are math and flash");
  recipe.step_contexts.push_back(std::make_shared<OneBackend>(backend));
  recipe.block_wrappers.emplace_back(BlockPlace::kCheckpoint,
                                     std::make_shared<SaysUnsupported>(backend));
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)

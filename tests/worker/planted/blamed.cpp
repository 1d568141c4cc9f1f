// Strategies whose mistake shows in somebody else's code, and some that a signal ends.
#include <ATen/ATen.h>

#include <csignal>
#include <cstdlib>

#include "peakbench/plugin.h"

namespace {

using namespace peakbench;

// The rule inside is given tensors of which no gradient has the parameter's shape.
struct WrongStandIns : UpdateRuleWrapper {
  struct Rule : UpdateRule {
    explicit Rule(std::shared_ptr<UpdateRule> inner) : inner_(std::move(inner)) {}
    void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
      std::vector<Parameter> own;
      for (const Parameter& one : parameters) {
        own.push_back({one.name, one.tensor.detach().clone()});
        own.back().tensor.mutable_grad() = at::ones({2, 3, 5});
      }
      inner_->update(own, grouping);
    }
    void visit_state(const StateVisitor& visit) override { inner_->visit_state(visit); }
    void forget(const at::Tensor& parameter) override { inner_->forget(parameter); }
    std::shared_ptr<UpdateRule> inner_;
  };
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) override {
    return std::make_shared<Rule>(std::move(inner));
  }
};

void spoil(const Parameter& parameter) {
  if (parameter.name == "heads.head.weight") parameter.tensor.mutable_grad() = at::ones({2, 3, 5});
}

struct WrongGradient : GradientHook {
  void on_gradient(const Parameter& parameter, const Pass&) override { spoil(parameter); }
};
struct WrongGradients : GradientTransform {
  bool apply(const std::vector<Parameter>& parameters) override {
    for (const Parameter& one : parameters) spoil(one);
    return true;
  }
};

// What autograd asks back is another tensor: its own operators fail.
struct WrongUnpack : SavedTensorHooks {
  struct Saved : SavedTensor {
    at::Tensor unpack() override { return at::ones({2, 3, 5}); }
  };
  std::shared_ptr<SavedTensor> pack(const at::Tensor&, const SavedTensorFacts&) override {
    return std::make_shared<Saved>();
  }
};

struct Once : StepRunner {
  at::Tensor run(Training&, Passes& passes, std::int64_t) override {
    return passes.forward_backward();
  }
};

struct Adapters : ModelTransform {
  struct Adapter : nn::LinearAdapter {
    at::Tensor forward(const nn::LinearLayer& base, const at::Tensor& x) override {
      return base.base_forward(x).view({7, -1, 11});
    }
  };
  void apply(Model& model) override {
    model.linears().front().layer->attach("wrong", std::make_shared<Adapter>());
  }
};

[[noreturn]] void fail() { throw std::runtime_error("out of a destructor"); }

__attribute__((noinline)) void touch_nothing() {
  volatile int* volatile nothing = nullptr;  // no compiler may think about it
  *nothing = 1;
}

struct FaultsInRun : BlockWrapper {
  std::vector<at::Tensor> run(std::size_t, std::size_t, const BlockFunction& block,
                              const std::vector<at::Tensor>& inputs) override {
    touch_nothing();
    return block(inputs);
  }
};
struct FaultsInHook : GradientHook {
  void on_gradient(const Parameter&, const Pass&) override { touch_nothing(); }
};
struct AbortsAtBegin : StepListener {
  void on_step_begin(Training&, std::int64_t step) override {
    if (step == 1) std::abort();
  }
};
// What leaves a destructor ends the process.
struct ThrowsAtExit : LossTransform {
  struct Thrower {
    ~Thrower() { fail(); }
  };
  at::Tensor apply(const at::Tensor& loss, const Pass&) override {
    Thrower thrower;
    return loss * 2;
  }
};
struct Divides : GradientTransform {
  bool apply(const std::vector<Parameter>&) override {
    volatile int some = 7, none = 0;
    volatile int quotient = some / none;
    return quotient == 0;
  }
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  const std::string& id = context.id;
  if (id == "wrong-stand-ins")
    recipe.update_rule_wrappers.emplace_back(UpdatePlace::kOffload,
                                             std::make_shared<WrongStandIns>());
  if (id == "wrong-gradient")
    recipe.gradient_hooks.emplace_back(GradientPlace::kReduce, std::make_shared<WrongGradient>());
  if (id == "wrong-gradients")
    recipe.gradient_transforms.push_back(std::make_shared<WrongGradients>());
  if (id == "wrong-unpack")
    recipe.saved_tensor_hooks.emplace_back(SavedTensorPlace::kOffload,
                                           std::make_shared<WrongUnpack>());
  if (id == "runs-once") recipe.step_runner = std::make_shared<Once>();
  if (id == "wrong-adapter") recipe.adapters = std::make_shared<Adapters>();
  if (id == "faults-in-run")
    recipe.block_wrappers.emplace_back(BlockPlace::kOffload, std::make_shared<FaultsInRun>());
  if (id == "faults-in-hook")
    recipe.gradient_hooks.emplace_back(GradientPlace::kReduce, std::make_shared<FaultsInHook>());
  if (id == "aborts-at-begin") recipe.step_listeners.push_back(std::make_shared<AbortsAtBegin>());
  if (id == "throws-at-exit") recipe.loss_transforms.push_back(std::make_shared<ThrowsAtExit>());
  if (id == "divides") recipe.gradient_transforms.push_back(std::make_shared<Divides>());
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)

// Strategies around what the models of inputs.cpp say.
#include <ATen/ATen.h>

#include "peakbench/plugin.h"

namespace {

using namespace peakbench;

constexpr std::int64_t kPrompts = 3;

// The model's own loss, made by somebody else, who draws a random number besides.
struct OwnHead : LossHead {
  at::Tensor loss(Model& model, const at::Tensor& hidden_states, const Batch& batch) override {
    at::rand({1});
    const OutputHead head = model.output_head().value();
    const at::Tensor logits = head.logits(hidden_states);
    return at::cross_entropy_loss(logits.view({-1, logits.size(-1)}),
                                  head.targets(batch.target).reshape(-1), {}, at::Reduction::Mean,
                                  head.ignore_index);
  }
};

// peft's prompt tuning: peft/peft_model.py, PeftModelForCausalLM.forward and get_prompt, and
// peft/tuners/prompt_tuning/model.py
struct Prompts : ModelTransform, EmbeddingWrapper, StepContext {
  void apply(Model& model) override {
    const at::Tensor like = model.module().parameters().front();
    tokens = at::arange(kPrompts, at::kLong);
    prompt = model.module().register_parameter(
        "prompt", at::randn({kPrompts, like.size(-1)}, like.options().dtype(at::kFloat)));
  }
  at::Tensor target(const at::Tensor& target) override {
    constexpr std::int64_t kIgnored = -100;
    const at::Tensor before =
        at::full({target.size(0), kPrompts}, kIgnored, at::kLong).to(target.device());
    in_frame.push_back(before);
    return at::cat({before, target}, 1);
  }
  at::Tensor run(const EmbedFunction& embed, const Batch& batch) override {
    const at::Tensor embeddings = embed(batch);  // (B, T, C)
    const at::Tensor made = prompts(embeddings.size(0)).to(embeddings.scalar_type());
    in_frame.insert(in_frame.end(), {made, at::cat({made, embeddings}, 1)});
    return in_frame.back();
  }
  // What peft's forward has names for is there until it returns.
  std::shared_ptr<void> enter_forward(const Pass&) override {
    return {this, [](Prompts* self) { self->in_frame.clear(); }};
  }

 private:
  // (B, kPrompts, C)
  at::Tensor prompts(std::int64_t batch) const {
    const at::Tensor of_all = tokens.unsqueeze(0).expand({batch, -1}).to(prompt.device());
    const at::Tensor of_one = at::embedding(prompt, of_all.slice(0, 0, 1));
    return of_one.repeat({batch, 1, 1});
  }
  at::Tensor prompt, tokens;
  std::vector<at::Tensor> in_frame;
};

struct NullEmbedding : EmbeddingWrapper {
  at::Tensor run(const EmbedFunction&, const Batch&) override { return {}; }
};
struct NoOutputs : BlockWrapper {
  std::vector<at::Tensor> run(std::size_t, std::size_t, const BlockFunction&,
                              const std::vector<at::Tensor>&) override {
    return {};
  }
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  const std::string& id = context.id;
  if (id == "own-head") recipe.loss_head = std::make_shared<OwnHead>();
  if (id == "null-embedding")
    recipe.embedding_wrappers.push_back(std::make_shared<NullEmbedding>());
  if (id == "no-outputs")
    recipe.block_wrappers.emplace_back(BlockPlace::kCheckpoint, std::make_shared<NoOutputs>());
  if (id != "prompts") return;
  const auto prompts = std::make_shared<Prompts>();
  recipe.adapters = prompts;
  recipe.embedding_wrappers.push_back(prompts);
  recipe.step_contexts.push_back(prompts);
  recipe.freezing.emplace_back([](const Parameter& one) { return one.name != "prompt"; });
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)

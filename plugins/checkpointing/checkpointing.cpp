// Activation checkpointing: computation in backward for memory in forward.
#include <cmath>
#include <utility>

#include "frame.h"
#include "peakbench/plugin.h"

namespace peakbench::checkpointing {
namespace {

// Each n-th block by itself, or one part of it.
class EveryNth : public BlockWrapper {
 public:
  EveryNth(std::int64_t every, Selection keeps, std::vector<std::string> parts)
      : every_(static_cast<std::size_t>(every)), keeps_(keeps), parts_(std::move(parts)) {}

  std::vector<std::string> parts() const override { return parts_; }
  std::vector<at::Tensor> run(std::size_t index, std::size_t count, const BlockFunction& block,
                              const std::vector<at::Tensor>& inputs) override {
    return index % every_ == 0 ? run_checkpointed(block, inputs, keeps_) : block(inputs);
  }

 private:
  std::size_t every_;
  Selection keeps_;
  std::vector<std::string> parts_;
};

// All blocks, in ceil(sqrt(count)) segments of nearly equal length, the longer ones first; of a
// segment nothing is kept but its input. https://arxiv.org/abs/1604.06174, section 4.1
class SquareRootSegments : public BlockWrapper {
 public:
  explicit SquareRootSegments(Selection keeps) : keeps_(keeps) {}

  std::vector<at::Tensor> run(std::size_t index, std::size_t count, const BlockFunction& block,
                              const std::vector<at::Tensor>& inputs) override {
    if (!at::GradMode::is_enabled()) return block(inputs);
    if (begins_segment(index, count)) frame_ = std::make_shared<Frame>(keeps_);
    auto outputs = frame_->run(block, inputs);
    if (index + 1 == count) frame_.reset();
    return outputs;
  }

 private:
  static bool begins_segment(std::size_t index, std::size_t count) {
    const auto segments = static_cast<std::size_t>(std::ceil(std::sqrt(count)));
    const std::size_t length = count / segments, longer = count % segments;
    const std::size_t in_longer = longer * (length + 1);
    return index < in_longer ? index % (length + 1) == 0 : (index - in_longer) % length == 0;
  }

  Selection keeps_;
  std::shared_ptr<Frame> frame_;  // of the segment that runs
};

Selection selection(const std::string& keep) {
  return {.matmuls = keep == "matmuls" || keep == "matmuls_and_attention",
          .attention = keep == "attention" || keep == "matmuls_and_attention"};
}

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  const Options& options = context.options;
  const std::int64_t every = options.integer("every");
  const bool by_square_root = options.string("segments") == "sqrt";
  const Selection keeps = selection(options.string("keep"));
  const std::string& part = options.string("parts");
  const bool whole_blocks = part == "none";
  if (by_square_root && every != 1)
    throw OptionError("checkpointing: every=" + std::to_string(every) +
                      " chooses blocks, and segments=sqrt takes all of them; give one of the two");
  if (by_square_root && !whole_blocks)
    throw OptionError("checkpointing: parts=" + part +
                      " takes a part of each block, and segments=sqrt takes blocks that follow "
                      "each other; give one of the two");
  std::shared_ptr<BlockWrapper> wrapper;
  if (by_square_root)
    wrapper = std::make_shared<SquareRootSegments>(keeps);
  else
    wrapper = std::make_shared<EveryNth>(
        every, keeps, whole_blocks ? std::vector<std::string>{} : std::vector{part});
  recipe.block_wrappers.emplace_back(BlockPlace::kCheckpoint, std::move(wrapper));
}

}  // namespace
}  // namespace peakbench::checkpointing

PEAKBENCH_STRATEGY_PLUGIN(peakbench::checkpointing::apply)

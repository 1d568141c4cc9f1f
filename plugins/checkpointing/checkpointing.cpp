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
  EveryNth(std::size_t every, Selection keeps, std::vector<std::string> parts)
      : every_(every), keeps_(keeps), parts_(std::move(parts)) {}

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

std::vector<std::string> parts_of(const std::string& parts) {
  if (parts == "none") return {};
  return {parts};
}

class Checkpointing : public Strategy {
 public:
  explicit Checkpointing(const Options& options)
      : every_(static_cast<std::size_t>(options.integer("every"))),
        by_square_root_(options.string("segments") == "sqrt"),
        keeps_(selection(options.string("keep"))),
        parts_(parts_of(options.string("parts"))) {
    if (by_square_root_ && every_ != 1)
      throw OptionError(
          "checkpointing: every=" + std::to_string(every_) +
          " chooses blocks, and segments=sqrt takes all of them; give one of the two");
    if (by_square_root_ && !parts_.empty())
      throw OptionError("checkpointing: parts=" + parts_.front() +
                        " takes a part of each block, and segments=sqrt takes blocks that follow "
                        "each other; give one of the two");
  }

  void apply(Recipe& recipe, Model& model) override {
    std::shared_ptr<BlockWrapper> wrapper;
    if (by_square_root_)
      wrapper = std::make_shared<SquareRootSegments>(keeps_);
    else
      wrapper = std::make_shared<EveryNth>(every_, keeps_, parts_);
    recipe.block_wrappers.emplace_back(BlockPlace::kCheckpoint, std::move(wrapper));
  }

 private:
  std::size_t every_;
  bool by_square_root_;
  Selection keeps_;
  std::vector<std::string> parts_;  // none: whole blocks
};

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return std::make_unique<Checkpointing>(context.options);
}

}  // namespace
}  // namespace peakbench::checkpointing

PEAKBENCH_STRATEGY_PLUGIN(peakbench::checkpointing::make)

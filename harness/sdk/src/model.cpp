#include "peakbench/model.h"

namespace peakbench {
namespace {

at::Tensor run_wrapped(const std::vector<std::shared_ptr<BlockWrapper>>& wrappers,
                       std::size_t depth, std::size_t index, std::size_t count,
                       const BlockFunction& block, const std::vector<at::Tensor>& inputs) {
  if (depth == wrappers.size()) return block(inputs);
  // By value: a wrapper may keep the function until backward.
  BlockFunction inner = [&wrappers, depth, index, count, block](const std::vector<at::Tensor>& x) {
    return run_wrapped(wrappers, depth + 1, index, count, block, x);
  };
  return wrappers[depth]->run(index, count, inner, inputs);
}

}  // namespace

void Model::set_block_wrappers(std::vector<std::shared_ptr<BlockWrapper>> wrappers) {
  wrappers_ = std::move(wrappers);
}

at::Tensor Model::run_block(std::size_t index, const BlockFunction& block,
                            const std::vector<at::Tensor>& inputs) {
  return run_wrapped(wrappers_, 0, index, block_count(), block, inputs);
}

}  // namespace peakbench

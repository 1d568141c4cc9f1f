// A model that nothing is asked of but the paths of its blocks, for strategies that read no more.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "peakbench/plugin.h"

namespace peakbench::test {

class NoModel : public Model {
 public:
  explicit NoModel(std::vector<std::string> block_paths = {})
      : block_paths_(std::move(block_paths)) {}

  torch::nn::Module& module() override { throw std::logic_error("not asked"); }
  Batch make_batch(const BatchShape&) override { return {}; }
  at::Tensor hidden_states(const Batch&) override { return {}; }
  at::Tensor loss(at::Tensor, const Batch&) override { return {}; }
  DefaultUpdateRule default_update_rule() const override { return DefaultUpdateRule::kAdam; }
  std::vector<NamedLinear> linears() override { return {}; }
  std::vector<std::string> block_paths() const override { return block_paths_; }

 private:
  std::vector<std::string> block_paths_;
};

}  // namespace peakbench::test

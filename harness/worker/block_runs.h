// Is a block run on all samples that its wrapper was given?
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace peakbench::worker {

// One call of a wrapper. What the block is run on later, in backward, does not count.
class BlockRuns {
 public:
  explicit BlockRuns(const std::vector<at::Tensor>& inputs);  // of the wrapper: (B, ...) first
  void note(const std::vector<at::Tensor>& inputs);           // of the block
  void end() { is_over_ = true; }
  bool left_out() const { return calls_ == 0; }
  // "an input of [4, 5, 7] (it was given [4, 5, 48])" where the wrapper hands the block
  // something of another shape, the number of samples apart; else empty.
  std::string unlike(const std::vector<at::Tensor>& inputs) const;
  // As a sentence's end: "leaves block 3 out", "runs block 3 on 2 of 4 samples"; empty where all
  // were run, or where the block was run on something of another shape.
  std::string missing(std::size_t block) const;

 private:
  std::vector<std::int64_t> whole_;
  std::int64_t samples_ = 0, calls_ = 0;
  bool is_comparable_ = true, is_over_ = false;
};

}  // namespace peakbench::worker

// Is a block, or a part of one, run on all that its wrapper was given?
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace peakbench::worker {

// One call of a wrapper. What the block is run on later, in backward, counts for its gradients
// alone.
//
// A block is run on samples: (B, ...) -> (b, ...), the rest of the shape as it was. A part may be
// run on slices of any dimension but the last, several times (a tiled MLP): its positions count.
class BlockRuns {
 public:
  // Of the wrapper: (B, ...) first. `part`: its name; empty: the block itself.
  BlockRuns(const std::vector<at::Tensor>& inputs, std::string part);
  void note(const std::vector<at::Tensor>& inputs);  // of the block
  void end() { is_over_ = true; }
  bool left_out() const { return calls_ == 0; }
  // "an input of [4, 5, 7] (it was given [4, 5, 48])" where the wrapper hands the block
  // something of another shape, the number of samples apart; else empty.
  std::string unlike(const std::vector<at::Tensor>& inputs) const;
  // As a sentence's end: "leaves block 3 out", "runs block 3 on 2 of 4 samples", "runs mlp of block
  // 3 on 96 of 128 positions"; empty where all were run, or where the block was run on something of
  // another shape.
  std::string missing(std::size_t block) const;
  // The same once backward is over, of runs with autograd: "runs block 3 with autograd on 2 of 4
  // samples". Empty, too, where there was none: what it trains has no gradient then.
  std::string missing_gradients(std::size_t block) const;

 private:
  // How many samples, or positions; nullopt where the shape does not tell.
  std::optional<std::int64_t> amount_of(const std::vector<at::Tensor>& inputs) const;
  std::string named(std::size_t block) const;
  std::string in_words(std::size_t block, const char* how, std::int64_t seen) const;

  std::string part_;
  std::vector<std::int64_t> whole_shape_;
  std::int64_t whole_ = 0, seen_ = 0, with_autograd_ = 0, calls_ = 0;
  bool is_comparable_ = true, is_over_ = false;
};

}  // namespace peakbench::worker

// A moment of Adam's as it is kept between steps: in few bits a value, or as a tensor where a
// parameter is too small for that to pay.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace peakbench::adamw_low_bit {

// How a moment is quantised: in blocks of consecutive values that share a scale.
struct Quantisation {
  int bits = 8;                   // 8, or 4: two codes in a byte
  std::int64_t block_size = 256;  // values
  std::vector<float> map;         // 2^bits, ascending: what a code stands for
};

// The values of one parameter, flattened. Ranges begin and end at a block's bounds (or at the end).
class Moment {
 public:
  virtual ~Moment() = default;
  // (end - begin) values in float32, a copy.
  virtual at::Tensor read(std::int64_t begin, std::int64_t end) const = 0;
  // values: float32, to `begin` and what follows.
  virtual void write(std::int64_t begin, const at::Tensor& values) = 0;
  // Every tensor of it, with what distinguishes it: "", or ".codes", ".scale", ".qmap".
  using Visitor = std::function<void(const std::string& suffix, at::Tensor& tensor)>;
  virtual void visit(const Visitor& visit) = 0;
};

// All zero. Fewer than 4096 values, or a number that is no multiple of the block size, are kept as
// a tensor of the parameter's dtype; more are quantised, which takes numel * bits / 8 bytes for
// codes, 4 a block for scales, and 4 * 2^bits for the map.
std::unique_ptr<Moment> make_moment(const at::Tensor& parameter, const Quantisation& quantisation);

}  // namespace peakbench::adamw_low_bit

#include "moment.h"

#include <ATen/ATen.h>

namespace peakbench::adamw_low_bit {
namespace {

constexpr std::int64_t kLeastQuantised = 4096;  // torchao's, and bitsandbytes'

class PlainMoment : public Moment {
 public:
  explicit PlainMoment(const at::Tensor& parameter)
      : values_(at::zeros_like(parameter, at::MemoryFormat::Contiguous)) {}
  at::Tensor read(std::int64_t begin, std::int64_t end) const override {
    return values_.view(-1).slice(0, begin, end).to(at::kFloat, false, /*copy=*/true);
  }
  void write(std::int64_t begin, const at::Tensor& values) override {
    values_.view(-1).slice(0, begin, begin + values.numel()).copy_(values);
  }
  void visit(const Visitor& visit) override { visit("", values_); }

 private:
  at::Tensor values_;
};

// The code whose value is nearest, for values in [-1, 1]. int32
at::Tensor nearest_codes(const at::Tensor& values, const at::Tensor& map) {
  const std::int64_t last = map.size(0) - 1;
  const at::Tensor below = at::bucketize(values, map.slice(0, 1), /*out_int32=*/true,
                                         /*right=*/true);
  const at::Tensor above = below.add(1).clamp_max_(last);
  const at::Tensor value_below = map.index_select(0, below);
  at::Tensor gap = map.index_select(0, above);
  gap.sub_(value_below).mul_(0.5);
  const at::Tensor is_above = values.sub(value_below).ge(gap);
  return at::where(is_above, above, below);
}

class QuantisedMoment : public Moment {
 public:
  QuantisedMoment(const at::Tensor& parameter, const Quantisation& quantisation)
      : bits_(quantisation.bits), block_size_(quantisation.block_size) {
    const at::TensorOptions options = parameter.options();
    codes_ = at::zeros({bytes(parameter.numel())}, options.dtype(at::kByte));
    scale_ = at::zeros({parameter.numel() / block_size_}, options.dtype(at::kFloat));
    map_ = at::tensor(quantisation.map, options.dtype(at::kFloat));
  }

  at::Tensor read(std::int64_t begin, std::int64_t end) const override {
    at::Tensor codes = codes_.slice(0, bytes(begin), bytes(end));
    if (bits_ == 4) codes = at::stack({codes.bitwise_right_shift(4), codes.bitwise_and(15)}, -1);
    codes = codes.view(-1).to(at::kInt);
    at::Tensor values = map_.index_select(0, codes);
    values.view({-1, block_size_}).mul_(scales(begin, end));
    return values;
  }

  void write(std::int64_t begin, const at::Tensor& values) override {
    const std::int64_t end = begin + values.numel();
    const at::Tensor blocks = values.view({-1, block_size_});
    at::Tensor scale = scales(begin, end);
    scale.copy_(blocks.abs().amax(-1, /*keepdim=*/true).clamp_min_(1e-12));
    at::Tensor codes = nearest_codes(blocks.div(scale).view(-1), map_).to(at::kByte);
    if (bits_ == 4) codes = packed(codes);
    codes_.slice(0, bytes(begin), bytes(end)).copy_(codes);
  }

  void visit(const Visitor& visit) override {
    visit(".codes", codes_);
    visit(".scale", scale_);
    visit(".qmap", map_);
  }

 private:
  std::int64_t bytes(std::int64_t values) const { return values * bits_ / 8; }
  // (blocks, 1)
  at::Tensor scales(std::int64_t begin, std::int64_t end) const {
    return scale_.slice(0, begin / block_size_, end / block_size_).unsqueeze(1);
  }
  static at::Tensor packed(const at::Tensor& codes) {
    const at::Tensor high = codes.slice(0, 0, codes.numel(), 2).bitwise_left_shift(4);
    return high.bitwise_or(codes.slice(0, 1, codes.numel(), 2));
  }

  int bits_;
  std::int64_t block_size_;
  at::Tensor codes_, scale_, map_;
};

}  // namespace

std::unique_ptr<Moment> make_moment(const at::Tensor& parameter, const Quantisation& quantisation) {
  const std::int64_t values = parameter.numel();
  if (values < kLeastQuantised || values % quantisation.block_size != 0)
    return std::make_unique<PlainMoment>(parameter);
  return std::make_unique<QuantisedMoment>(parameter, quantisation);
}

}  // namespace peakbench::adamw_low_bit

#include "peakbench/nn.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "peakbench/initialise.h"
#include "peakbench/observer.h"
#include "peakbench/unfilled.h"

namespace peakbench {
namespace {

// Quiet NaNs with a payload that no computation makes.
template <typename Visit>
void with_mark(at::ScalarType dtype, Visit&& visit) {
  if (dtype == at::kFloat) visit(std::uint32_t{0x7FC0FEED});
  if (dtype == at::kDouble) visit(std::uint64_t{0x7FF8FEEDFEEDFEED});
  if (dtype == at::kBFloat16) visit(std::uint16_t{0x7FED});
  if (dtype == at::kHalf) visit(std::uint16_t{0x7EED});
}

bool is_looked_into(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cpu() && tensor.has_storage() && tensor.numel() > 0 &&
         tensor.is_contiguous();
}

}  // namespace

at::Tensor unfilled(at::IntArrayRef shape, const at::TensorOptions& options) {
  at::Tensor made = at::empty(shape, options);
  if (!is_looked_into(made)) return made;
  with_mark(made.scalar_type(), [&](auto mark) {
    auto* data = static_cast<decltype(mark)*>(made.data_ptr());
    std::fill(data, data + made.numel(), mark);
  });
  return made;
}

bool is_unfilled(const at::Tensor& tensor) {
  if (!is_looked_into(tensor)) return false;
  bool found = false;
  with_mark(tensor.scalar_type(), [&](auto mark) {
    const auto holds_mark = [&](std::int64_t index) {
      decltype(mark) held{};
      std::memcpy(&held, static_cast<const char*>(tensor.const_data_ptr()) + index * sizeof held,
                  sizeof held);
      return held == mark;
    };
    found = holds_mark(0) && holds_mark(tensor.numel() - 1);
  });
  return found;
}

namespace {

constexpr std::int64_t kChunk = 1 << 16;

std::uint64_t next_seed() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
}

// One chunk, from a generator of its own: the values do not depend on which thread makes them.
template <typename Scalar>
void fill_chunk(Scalar* data, std::int64_t count, double deviation, std::uint64_t seed,
                std::vector<float>& scratch) {
  at::from_blob(scratch.data(), {count}, at::kFloat)
      .normal_(0, deviation, at::detail::createCPUGenerator(seed));
  std::transform(scratch.begin(), scratch.begin() + count, data,
                 [](float value) { return static_cast<Scalar>(value); });
}

template <typename Scalar>
void fill_on_cpu(Scalar* data, std::int64_t count, double deviation) {
  const std::uint64_t seed = next_seed();
  const std::int64_t chunks = (count + kChunk - 1) / kChunk;
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    const at::RecordFunctionGuard not_recorded(/*is_enabled=*/false);
    std::vector<float> scratch(static_cast<std::size_t>(std::min(count, kChunk)));
    for (std::int64_t i = next++; i < chunks; i = next++) {
      const std::int64_t begin = i * kChunk;
      fill_chunk(data + begin, std::min(kChunk, count - begin), deviation,
                 seed + static_cast<std::uint64_t>(i), scratch);
    }
  };
  std::vector<std::jthread> others;
  for (std::int64_t i = 1; i < std::min<std::int64_t>(at::get_num_threads(), chunks); ++i) {
    others.emplace_back(work);
  }
  work();
}

}  // namespace

// at::normal_ on the CPU runs on one thread, and for bfloat16 six times slower than for float: a
// minute for a model of a few billion parameters.
void fill_normal(const at::Tensor& tensor, double deviation) {
  const at::NoGradGuard no_grad;
  if (!tensor.is_cpu()) {
    tensor.normal_(0, deviation);
    return;
  }
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, tensor.scalar_type(), "fill_normal",
      [&] { fill_on_cpu(tensor.mutable_data_ptr<scalar_t>(), tensor.numel(), deviation); });
}

}  // namespace peakbench

namespace peakbench::nn {

namespace {

// Of the thread that builds a model.
thread_local bool on_demand = false;

}  // namespace

WeightsOnDemand::WeightsOnDemand() : before_(std::exchange(on_demand, true)) {}
WeightsOnDemand::~WeightsOnDemand() { on_demand = before_; }

LinearLayer::LinearLayer(std::int64_t in, std::int64_t out, const at::TensorOptions& options)
    : in_(in), out_(out), options_(options) {}

at::Tensor LinearLayer::base_forward(const at::Tensor& x) const {
  return replacement_ ? replacement_->linear(x, bias) : multiply(x);
}

at::Tensor LinearLayer::forward(const at::Tensor& x) const {
  ModuleScope scope(*this);
  return adapter_ ? adapter_->forward(*this, x) : base_forward(x);
}

void LinearLayer::register_weight(at::IntArrayRef shape, FillWeight fill) {
  const bool waits = fill && on_demand;
  weight = register_parameter("weight", waits  ? at::empty(shape, options_.device(at::kMeta))
                                        : fill ? at::empty(shape, options_)
                                               : unfilled(shape, options_));
  const at::NoGradGuard no_grad;
  if (waits)
    fill_ = std::move(fill);
  else if (fill)
    fill(weight);
}

void LinearLayer::make_weight() {
  if (!fill_) return;
  const at::NoGradGuard no_grad;
  at::Tensor made = at::empty(weight.sizes(), options_);
  std::exchange(fill_, nullptr)(made);
  weight = parameters_["weight"] = made.set_requires_grad(weight.requires_grad());
}

void LinearLayer::fill_from(FillWeight fill) {
  if (!fill_) throw std::logic_error("the weight of a linear layer is filled already");
  fill_ = std::move(fill);
}

at::Tensor LinearLayer::dense_weight() const {
  // Whoever asks finds the layer as it would be: a weight that waits is no other weight.
  const_cast<LinearLayer*>(this)->make_weight();
  return replacement_ ? replacement_->dense() : weight_as_matrix();
}

void LinearLayer::attach(const std::string& name, std::shared_ptr<LinearAdapter> adapter) {
  if (adapter_)
    throw std::logic_error("a linear layer takes one adapter, '" + name + "' would be its second");
  adapter_ = register_module(name, std::move(adapter));
}

void LinearLayer::replace_weight(std::shared_ptr<LinearWeight> replacement) {
  if (replacement_)
    throw std::logic_error("a linear layer's weight is replaced once; it was replaced already");
  parameters_.erase("weight");
  weight.reset();
  fill_ = nullptr;
  replacement_ = register_module("weight", std::move(replacement));
}

Linear::Linear(std::int64_t in_features, std::int64_t out_features, bool with_bias,
               const at::TensorOptions& options, FillWeight fill)
    : LinearLayer(in_features, out_features, options) {
  register_weight({out_features, in_features}, std::move(fill));
  if (with_bias) bias = register_parameter("bias", unfilled({out_features}, options));
}

at::Tensor Linear::multiply(const at::Tensor& x) const { return at::linear(x, weight, bias); }

Conv1d::Conv1d(std::int64_t in_features, std::int64_t out_features,
               const at::TensorOptions& options, FillWeight fill)
    : LinearLayer(in_features, out_features, options) {
  register_weight({in_features, out_features}, std::move(fill));
  bias = register_parameter("bias", at::zeros({out_features}, options));
}

at::Tensor Conv1d::multiply(const at::Tensor& x) const {
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = out_features();
  return at::addmm(bias, x.view({-1, x.size(-1)}), weight).view(shape);
}

LayerNorm::LayerNorm(std::int64_t features, double eps, const at::TensorOptions& options)
    : eps_(eps) {
  weight = register_parameter("weight", at::ones({features}, options));
  bias = register_parameter("bias", at::zeros({features}, options));
}

at::Tensor LayerNorm::forward(const at::Tensor& x) const {
  ModuleScope scope(*this);
  return at::layer_norm(x, weight.sizes(), weight, bias, eps_);
}

Embedding::Embedding(std::int64_t count, std::int64_t features, const at::TensorOptions& options) {
  weight = register_parameter("weight", unfilled({count, features}, options));
}

at::Tensor Embedding::forward(const at::Tensor& indices) const {
  ModuleScope scope(*this);
  return at::embedding(weight, indices);
}

Conv2d::Conv2d(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
               const at::TensorOptions& options)
    : stride_(stride) {
  weight = register_parameter("weight", unfilled({out, in, kernel, kernel}, options));
  bias = register_parameter("bias", unfilled({out}, options));
}

at::Tensor Conv2d::forward(const at::Tensor& x) const {
  ModuleScope scope(*this);
  return at::conv2d(x, weight, bias, {stride_, stride_});
}

}  // namespace peakbench::nn

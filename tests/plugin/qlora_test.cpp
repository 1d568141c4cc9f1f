// NF4: bytes by closed form, every value against a quantiser of plain loops, the error that the
// codebook allows, and the product with its gradient.
#include "qlora.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <optional>

namespace peakbench::qlora {
namespace {

constexpr std::int64_t kBlocksOfAFactor = 256;
constexpr std::array<double, 16> kCodebook = {-1.0,    -0.6962, -0.5251, -0.3949, -0.2844, -0.1848,
                                              -0.0911, 0.0,     0.0796,  0.1609,  0.2461,  0.3379,
                                              0.4407,  0.5626,  0.7230,  1.0};

at::Tensor weights(std::int64_t values, at::ScalarType dtype) {
  at::manual_seed(7);
  return at::randn({values / 16, 16}, at::kFloat).mul_(0.02).to(dtype);
}

template <typename T>
std::vector<T> list(const at::Tensor& tensor) {
  const T* data = tensor.const_data_ptr<T>();
  return {data, data + tensor.numel()};
}

// One value after the other, rounding to T wherever a tensor of T would.
template <typename T>
struct Plain {
  std::vector<std::uint8_t> data;
  std::vector<T> largest, factors, values;
  std::vector<std::int8_t> scales;

  Plain(const std::vector<T>& weights, T mean) {
    for (std::size_t begin = 0; begin < weights.size(); begin += kBlock)
      add_block(weights.data() + begin);
    for (std::size_t begin = 0; begin < largest.size(); begin += kBlocksOfAFactor)
      add_group(begin, std::min(begin + kBlocksOfAFactor, largest.size()), mean);
    for (std::size_t i = 0; i < weights.size(); ++i) values.push_back(value(i, mean));
  }

  void add_block(const T* block) {
    T most = T(0);
    for (std::int64_t i = 0; i < kBlock; ++i)
      most = std::max<T>(most, T(std::abs(float(block[i]))));
    largest.push_back(most);
    for (std::int64_t i = 0; i < kBlock; i += 2)
      data.push_back(
          std::uint8_t(nearest(T(block[i] / most)) << 4 | nearest(T(block[i + 1] / most))));
  }
  static int nearest(T value) {
    int best = 0;
    const auto distance = [&](int i) { return std::abs(float(T(value - T(float(kCodebook[i]))))); };
    for (int i = 1; i < 16; ++i)
      if (distance(i) < distance(best)) best = i;
    return best;
  }
  void add_group(std::size_t begin, std::size_t end, T mean) {
    T most = T(0);
    for (std::size_t i = begin; i < end; ++i)
      most = std::max<T>(most, T(std::abs(float(T(largest[i] - mean)))));
    const T factor = T(T(T(1) / T(most * T(2))) * T(256));
    factors.push_back(factor);
    for (std::size_t i = begin; i < end; ++i) {
      const float rounded = std::nearbyint(float(T(T(largest[i] - mean) * factor)));
      scales.push_back(std::int8_t(std::clamp(rounded, -128.0f, 127.0f)));
    }
  }
  T value(std::size_t i, T mean) const {
    const std::size_t block = i / kBlock;
    const int code = i % 2 == 0 ? data[i / 2] >> 4 : data[i / 2] & 15;
    const T scale = T(T(T(float(scales[block])) / factors[block / kBlocksOfAFactor]) + mean);
    return T(T(float(kCodebook[code])) * scale);
  }
};

template <typename T>
void expect_as_plain(std::int64_t values, at::ScalarType dtype) {
  const at::Tensor matrix = weights(values, dtype);
  const Nf4 nf4 = quantise(matrix, true);
  const Plain<T> plain(list<T>(matrix), nf4.mean.item<T>());
  EXPECT_EQ(list<std::uint8_t>(nf4.data), plain.data);
  EXPECT_EQ(list<std::int8_t>(nf4.scales), plain.scales);
  EXPECT_EQ(list<T>(nf4.factors), plain.factors);
  EXPECT_EQ(list<T>(dequantise(nf4, matrix.sizes()).contiguous()), plain.values);
  double sum = 0;
  for (const T one : plain.largest) sum += float(one);
  EXPECT_NEAR(nf4.mean.item<double>(), sum / plain.largest.size(),
              1e-2 * sum / plain.largest.size());
}

// One whole group; a group that is not whole; and more than is worked on at a time.
constexpr std::int64_t kSizes[] = {16384, 16384 * 3 + 64 * 5, (1 << 20) + 16384 + 64};

TEST(Nf4, EveryValueIsThatOfPlainLoops) {
  for (const std::int64_t values : kSizes) {
    expect_as_plain<float>(values, at::kFloat);
    expect_as_plain<at::BFloat16>(values, at::kBFloat16);
  }
}

std::int64_t bytes(const Nf4& nf4) {
  std::int64_t sum = 0;
  for (const at::Tensor& tensor : {nf4.data, nf4.scales, nf4.factors, nf4.mean, nf4.codebook})
    if (tensor.defined()) sum += static_cast<std::int64_t>(tensor.storage().nbytes());
  return sum;
}

TEST(Nf4, TakesHalfAByteAValueAndItsScales) {
  for (const std::int64_t n : kSizes) {
    for (const auto& [dtype, size] : {std::pair{at::kFloat, 4}, std::pair{at::kBFloat16, 2}}) {
      const std::int64_t groups = (n / 64 + 255) / 256;
      EXPECT_EQ(bytes(quantise(weights(n, dtype), true)), n / 2 + n / 64 + (groups + 17) * size);
      EXPECT_EQ(bytes(quantise(weights(n, dtype), false)), n / 2 + n / 64 * 4 + 16 * size);
    }
  }
}

// The widest gap of the codebook is from -1 to -0.6962; a scale is off by a step of 1/128 of its
// group's largest at most (127 stands for 128).
at::Tensor allowed(const at::Tensor& matrix, bool double_quantisation) {
  const at::Tensor scales = matrix.view({-1, kBlock}).abs().amax(1, true);
  at::Tensor error = scales * ((1 - 0.6962) / 2 + 1e-6);
  if (double_quantisation) error += (scales - scales.mean()).abs().max() / 128;
  return error.expand({-1, kBlock}).reshape(matrix.sizes());
}

TEST(Nf4, IsAsNearAsItsCodebookAllows) {
  const at::Tensor matrix = weights(16384 * 4, at::kFloat);
  for (const bool twice : {false, true}) {
    Nf4 nf4 = quantise(matrix, twice);
    const auto is_near = [&] {
      const at::Tensor error = (dequantise(nf4, matrix.sizes()) - matrix).abs();
      return at::all(error <= allowed(matrix, twice)).item<bool>();
    };
    EXPECT_TRUE(is_near());
    nf4.data[3].bitwise_xor_(0x80);  // one wrong bit is noticed
    EXPECT_FALSE(is_near());
  }
}

TEST(Nf4, ZerosStayZeros) {
  at::Tensor matrix = at::zeros({512, 64});
  EXPECT_TRUE(at::equal(dequantise(quantise(matrix, true), matrix.sizes()), matrix));
  matrix.slice(0, 256).fill_(0.5);
  const at::Tensor back = dequantise(quantise(matrix, true), matrix.sizes());
  EXPECT_TRUE(at::allclose(back, matrix, 0, 0.5 / 128)) << back;
}

TEST(Nf4Weight, MultipliesWithTheWholeWeightAndGivesItsGradient) {
  at::manual_seed(1);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    nn::Linear layer(96, 64, /*bias=*/true, dtype);
    for (const auto& parameter : layer.parameters()) parameter.detach().normal_(0, 0.1);
    layer.replace_weight(std::make_shared<Nf4Weight>(layer, true));
    const at::Tensor whole = layer.dense_weight(), bias = layer.bias.detach();
    ASSERT_EQ(whole.scalar_type(), dtype);

    const at::Tensor x = at::randn({2, 5, 96}, dtype).requires_grad_();
    const at::Tensor y = layer.forward(x), gradient = at::randn_like(y);
    EXPECT_TRUE(at::equal(y, at::linear(x, whole) + bias));
    torch::autograd::backward({y}, {gradient});
    EXPECT_TRUE(at::equal(x.grad(), at::matmul(gradient, whole)));
    EXPECT_EQ(layer.named_parameters().keys(), std::vector<std::string>{"bias"});
  }
}

TEST(WeightsOnDemand, ALayerTakesMemoryWhenItsWeightIsNeeded) {
  int filled = 0;
  const auto fill = [&](const at::Tensor& weight) { weight.fill_(++filled); };
  std::optional<nn::WeightsOnDemand> scope(std::in_place);
  nn::Linear layer(4, 3, /*bias=*/true, at::kFloat, fill), at_once(4, 3, false, at::kFloat);
  scope.reset();
  nn::Linear later(4, 3, false, at::kFloat, fill);
  EXPECT_FALSE(at_once.weight.is_meta()) << "whoever made it fills it, and needs the memory";
  EXPECT_TRUE(at::equal(later.weight, at::ones({3, 4})));
  EXPECT_THROW(later.fill_from(fill), std::logic_error);

  EXPECT_TRUE(layer.has_waiting_weight());
  EXPECT_TRUE(layer.weight.is_meta());
  layer.weight.set_requires_grad(true);
  EXPECT_TRUE(at::equal(layer.dense_weight(), at::full({3, 4}, 2.0)));
  EXPECT_TRUE(layer.named_parameters()["weight"].is_same(layer.weight));
  EXPECT_TRUE(layer.weight.requires_grad());
  EXPECT_EQ(layer.named_parameters().keys(), (std::vector<std::string>{"weight", "bias"}));
  layer.dense_weight();
  EXPECT_EQ(filled, 2) << "made once";
}

TEST(WeightsOnDemand, ALayerThatIsQuantisedKeepsNothingOfItsWeight) {
  at::manual_seed(1);
  const auto fill = [](const at::Tensor& weight) { weight.normal_(0, 0.1); };
  nn::Linear whole(64, 64, false, at::kFloat, fill);
  at::manual_seed(1);
  std::optional<nn::WeightsOnDemand> scope(std::in_place);
  nn::Linear layer(64, 64, false, at::kFloat, fill);
  scope.reset();
  for (auto* one : {&whole, &layer}) one->replace_weight(std::make_shared<Nf4Weight>(*one, true));
  EXPECT_FALSE(layer.has_waiting_weight());
  EXPECT_TRUE(at::equal(layer.dense_weight(), whole.dense_weight()));
  EXPECT_TRUE(layer.named_parameters().is_empty());
}

}  // namespace
}  // namespace peakbench::qlora

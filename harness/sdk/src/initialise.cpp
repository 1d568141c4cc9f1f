#include "peakbench/initialise.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace peakbench {
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

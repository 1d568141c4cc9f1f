// Workspaces that cuDNN was seen to take for convolutions: `convolution_workspaces` of a card's
// file.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/api.h"

namespace peakbench::emulator {

inline constexpr const char* kConvolutionWorkspaces = "convolution_workspaces";

enum class ConvolutionPass { forward, backward_data, backward_weight };
inline constexpr int kConvolutionPasses = 3;

// What cuDNN chooses an engine by. Sizes as PyTorch has them: input [N, C, H, W], weight [K,
// C / groups, R, S]; one or three dimensions of an image as well.
struct Convolution {
  std::vector<std::int64_t> input, weight, stride, padding, dilation;
  std::string dtype;  // "bfloat16"
  bool channels_last = false;
  bool tf32 = false;  // torch.backends.cudnn.allow_tf32, of float32

  bool operator==(const Convolution&) const = default;
  bool operator<(const Convolution& other) const {
    const auto all = [](const Convolution& one) {
      return std::tie(one.input, one.weight, one.stride, one.padding, one.dilation, one.dtype,
                      one.channels_last, one.tf32);
    };
    return all(*this) < all(other);
  }
};

// Bytes by pass; empty where it was not seen.
using ConvolutionBytes = std::array<std::optional<std::uint64_t>, kConvolutionPasses>;

struct MeasuredConvolutions {
  int cudnn_version = 0;  // 91900 for 9.19.0
  std::string source;     // where and when
  std::map<Convolution, ConvolutionBytes> bytes;
};

// Throws std::invalid_argument: which entry, and what is wrong with it. Two answers for one call
// are wrong, too.
std::vector<MeasuredConvolutions> read_convolutions(const nlohmann::json& list);
// Those of a card's file that the launcher has read and found right.
PEAKBENCH_EMULATOR_API std::vector<MeasuredConvolutions> convolutions_in(const std::string& path);
nlohmann::ordered_json to_json(const std::vector<MeasuredConvolutions>& measured);

}  // namespace peakbench::emulator

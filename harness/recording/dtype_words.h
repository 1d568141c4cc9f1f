// The words for dtypes, the same in case ids, traces and reports: one table for both directions.
#pragma once

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

namespace peakbench::recording {

inline constexpr std::array<std::pair<const char*, at::ScalarType>, 5> kDtypeWords{
    {{"fp32", at::kFloat},
     {"bf16", at::kBFloat16},
     {"fp16", at::kHalf},
     {"fp64", at::kDouble},
     {"int64", at::kLong}}};

// PyTorch's own name where we have no word.
inline std::string dtype_word(at::ScalarType dtype) {
  const auto found =
      std::ranges::find(kDtypeWords, dtype, [](const auto& row) { return row.second; });
  return found == kDtypeWords.end() ? c10::toString(dtype) : found->first;
}

inline std::optional<at::ScalarType> dtype_from_word(const std::string& word) {
  const auto found =
      std::ranges::find(kDtypeWords, word, [](const auto& row) { return row.first; });
  return found == kDtypeWords.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace peakbench::recording

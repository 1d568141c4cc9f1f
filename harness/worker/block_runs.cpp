#include "worker/block_runs.h"

#include <c10/core/GradMode.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <utility>

namespace peakbench::worker {

BlockRuns::BlockRuns(const std::vector<at::Tensor>& inputs, std::string part)
    : part_(std::move(part)) {
  if (!inputs.empty() && inputs.front().defined()) whole_shape_ = inputs.front().sizes().vec();
  const auto whole = amount_of(inputs);
  is_comparable_ = whole.has_value();
  whole_ = whole.value_or(0);
}

std::optional<std::int64_t> BlockRuns::amount_of(const std::vector<at::Tensor>& inputs) const {
  if (whole_shape_.empty() || inputs.empty() || !inputs.front().defined()) return std::nullopt;
  const auto sizes = inputs.front().sizes();
  if (!part_.empty()) {
    // Flattened, or sliced along the sequence: only the features must be all there.
    const bool same = !sizes.empty() && sizes.back() == whole_shape_.back() && sizes.back() > 0;
    return same ? std::optional(inputs.front().numel() / sizes.back()) : std::nullopt;
  }
  const bool same = sizes.size() == whole_shape_.size() &&
                    std::equal(sizes.begin() + 1, sizes.end(), whole_shape_.begin() + 1);
  return same ? std::optional(sizes[0]) : std::nullopt;
}

void BlockRuns::note(const std::vector<at::Tensor>& inputs) {
  const auto amount = amount_of(inputs);
  is_comparable_ = is_comparable_ && amount.has_value();
  if (c10::GradMode::is_enabled()) with_autograd_ += amount.value_or(0);
  if (is_over_) return;
  ++calls_;
  seen_ += amount.value_or(0);
}

std::string BlockRuns::unlike(const std::vector<at::Tensor>& inputs) const {
  if (whole_shape_.empty()) return "";
  if (inputs.empty() || !inputs.front().defined()) return "no input";
  if (amount_of(inputs)) return "";
  return c10::str("an input of ", inputs.front().sizes(), " (it was given ",
                  at::IntArrayRef(whole_shape_), ")");
}

std::string BlockRuns::in_words(std::size_t block, const char* how, std::int64_t seen) const {
  return "runs " + named(block) + how + " on " + std::to_string(seen) + " of " +
         std::to_string(whole_) + (part_.empty() ? " samples" : " positions");
}

std::string BlockRuns::named(std::size_t block) const {
  return (part_.empty() ? "block " : part_ + " of block ") + std::to_string(block);
}

std::string BlockRuns::missing(std::size_t block) const {
  if (calls_ == 0) return "leaves " + named(block) + " out";
  return is_comparable_ && seen_ < whole_ ? in_words(block, "", seen_) : "";
}

std::string BlockRuns::missing_gradients(std::size_t block) const {
  const bool some = is_comparable_ && with_autograd_ > 0 && with_autograd_ < whole_;
  return some ? in_words(block, " with autograd", with_autograd_) : "";
}

}  // namespace peakbench::worker

#include "worker/block_runs.h"

#include <c10/util/StringUtil.h>

#include <algorithm>

namespace peakbench::worker {

BlockRuns::BlockRuns(const std::vector<at::Tensor>& inputs) {
  if (!inputs.empty() && inputs.front().defined()) whole_ = inputs.front().sizes().vec();
}

void BlockRuns::note(const std::vector<at::Tensor>& inputs) {
  if (is_over_) return;
  ++calls_;
  is_comparable_ = is_comparable_ && !whole_.empty() && !inputs.empty() && inputs.front().defined();
  if (!is_comparable_) return;
  const auto sizes = inputs.front().sizes();
  is_comparable_ = sizes.size() == whole_.size() &&
                   std::equal(sizes.begin() + 1, sizes.end(), whole_.begin() + 1);
  if (is_comparable_) samples_ += sizes[0];
}

std::string BlockRuns::unlike(const std::vector<at::Tensor>& inputs) const {
  if (whole_.empty()) return "";
  if (inputs.empty() || !inputs.front().defined()) return "no input";
  const auto sizes = inputs.front().sizes();
  const bool alike = sizes.size() == whole_.size() &&
                     std::equal(sizes.begin() + 1, sizes.end(), whole_.begin() + 1);
  return alike ? ""
               : c10::str("an input of ", sizes, " (it was given ", at::IntArrayRef(whole_), ")");
}

std::string BlockRuns::missing(std::size_t block) const {
  const std::string name = "block " + std::to_string(block);
  if (calls_ == 0) return "leaves " + name + " out";
  if (!is_comparable_ || samples_ >= whole_[0]) return "";
  return "runs " + name + " on " + std::to_string(samples_) + " of " + std::to_string(whole_[0]) +
         " samples";
}

}  // namespace peakbench::worker

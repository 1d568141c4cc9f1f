#include "reports/run/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/numbers.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "trace/maxima.h"

namespace peakbench::reports {
namespace {

using analysis::Cause;

std::string tensors_text(std::int64_t count) {
  return grouped(count) + (count == 1 ? " tensor" : " tensors");
}

// Empty where nothing is known.
std::string place(const Cause& cause) {
  if (cause.where.empty()) return cause.op.empty() ? "" : "by " + printable(cause.op);
  return printable(cause.where) + (cause.op.empty() ? "" : ", by " + printable(cause.op));
}

// "bf16 -> fp32", where both sides have one and not the same; else empty.
std::string pair_text(const std::set<std::string>& base, const std::set<std::string>& now) {
  if (base.size() != 1 || now.size() != 1 || *base.begin() == *now.begin()) return "";
  return printable(*base.begin()) + " -> " + printable(*now.begin());
}

// How many, of the same number on both sides, and what about them is another.
std::string pair_of_many(const Cause& cause) {
  const auto tensors = tensors_text(cause.now.tensors);
  for (const auto& other : {pair_text(cause.base.dtypes, cause.now.dtypes),
                            pair_text(cause.base.shapes, cause.now.shapes)})
    if (!other.empty()) return other + ", " + tensors;
  const bool larger = cause.block_difference() > 0;
  if (cause.requested_difference() == 0)
    return fmt::format("{} in {}{} {} for the same bytes", tensors,
                       cause.now.tensors == 1 ? "a " : "", larger ? "larger" : "smaller",
                       cause.now.tensors == 1 ? "block" : "blocks");
  return fmt::format("{}, {}", tensors, cause.requested_difference() > 0 ? "larger" : "smaller");
}

std::string with_commas(const std::vector<std::string>& parts) {
  std::string text;
  for (const auto& part : parts)
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  return text.empty() ? "in no module" : text;
}

std::string numbers(const Cause& cause) {
  const auto before = cause.base.tensors, after = cause.now.tensors;
  if (before == 0 && after == 0) return "";
  if (before == 0) return tensors_text(after) + " more";
  if (after == 0) return tensors_text(before) + " fewer";
  if (before != after)
    return fmt::format("{} in place of {}", tensors_text(after), grouped(before));
  return pair_of_many(cause);
}

}  // namespace

std::string cause_text(const Cause& cause) { return with_commas({place(cause), numbers(cause)}); }

std::string held_text(const Cause& cause) {
  const auto dtype = cause.now.dtypes.size() == 1 ? printable(*cause.now.dtypes.begin()) : "";
  return with_commas(
      {place(cause), dtype, cause.now.tensors == 0 ? "" : tensors_text(cause.now.tensors)});
}

// Words made of moments.

namespace {

using trace::Anatomy;
using trace::Category;
using trace::kCategoryCount;
using trace::Moment;
using trace::Phase;

// As in the tables: GiB with three decimals; bytes below one MiB.
std::string size(std::int64_t bytes) {
  const auto magnitude = std::llabs(bytes);
  if (magnitude < 1 << 20) return fmt::format("{} bytes", magnitude);
  return gib_text(magnitude);
}

double percent_change(std::int64_t from, std::int64_t to) {
  return from == 0 ? 0.0 : 100.0 * static_cast<double>(to - from) / static_cast<double>(from);
}

std::string signed_change(std::int64_t from, std::int64_t to) {
  const auto change = percent_change(from, to);
  return fmt::format("{}{:.1f} %", change < 0 ? kMinus : "+", std::fabs(change));
}

const char* spoken(Phase phase) {
  return phase == Phase::kOptimizerStep ? "the optimizer step"
         : phase == Phase::kBuild       ? "the build"
         : phase == Phase::kData        ? "what is between two steps"
         : phase == Phase::kCheckpoint  ? "the saving of a checkpoint"
                                        : to_string(phase);
}

// As it follows "1.000 GiB less".
const char* spoken(Category category) {
  static constexpr std::array<const char*, kCategoryCount> kWords = {
      "parameter memory",         "buffer memory",         "gradient memory",
      "optimizer state",          "input memory",          "activation memory",
      "recomputed activations",   "temporary memory",      "library workspace",
      "buffers of communication", "memory of CUDA graphs", "memory kept from step to step",
      "allocator slack"};
  return kWords.at(static_cast<std::size_t>(category));
}

std::string where(const Moment& moment) {
  std::string text = spoken(moment.phase);
  if (moment.in_update && moment.phase != Phase::kOptimizerStep)
    text += ", inside a parameter update";
  if (!moment.op.empty()) text += fmt::format(" ({})", moment.op);
  return text;
}

struct Change {
  Category category;
  std::int64_t bytes;
};

// Of at least so many bytes, and at most four categories.
std::vector<Change> changes_of(const Moment& from, const Moment& to, std::int64_t least) {
  const auto before = trace::by_category(from.breakdown), after = trace::by_category(to.breakdown);
  std::vector<Change> found;
  for (std::size_t i = 0; i < kCategoryCount; ++i) {
    const auto bytes = after[i] - before[i];
    if (bytes != 0 && std::llabs(bytes) >= least)
      found.push_back({static_cast<Category>(i), bytes});
  }
  std::ranges::stable_sort(found, [](const Change& a, const Change& b) {
    return std::llabs(a.bytes) > std::llabs(b.bytes);
  });
  constexpr std::size_t kMost = 4;
  if (found.size() > kMost) found.resize(kMost);
  return found;
}

// A tenth of a percent is not a saving that anyone would use a strategy for.
bool same(std::int64_t from, std::int64_t to) { return std::fabs(percent_change(from, to)) < 0.1; }

// What matters of the difference: one percent of the larger side; where nothing is as much and the
// whole has changed, a quarter of that.
std::vector<Change> changes(const Moment& from, const Moment& to) {
  const auto before = from.allocated_bytes, after = to.allocated_bytes;
  auto found = changes_of(from, to, std::max(before, after) / 100);
  if (found.empty() && !same(before, after))
    found = changes_of(from, to, std::llabs(after - before) / 4);
  return found;
}

// "1.103 GiB less gradient memory and 0.272 GiB more activation memory".
// What most of a category's change is: one cause of at least two thirds of it. Otherwise the
// category says as much.
std::string mostly(const Change& change, const Causes& causes) {
  const auto category = std::ranges::find(causes, std::string(to_string(change.category)),
                                          &analysis::CategoryCauses::category);
  if (category == causes.end() || category->causes.empty()) return "";
  const auto& first = category->causes.front();
  const bool is_most = (first.block_difference() > 0) == (change.bytes > 0) &&
                       std::llabs(first.block_difference()) * 3 >= std::llabs(change.bytes) * 2;
  return is_most ? " (" + cause_text(first) + ")" : "";
}

std::string list(const std::vector<Change>& changes, const Causes& causes = {}) {
  std::string text;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (i > 0) text += i + 1 == changes.size() ? " and " : ", ";
    text +=
        fmt::format("{} {} {}{}", size(changes[i].bytes), changes[i].bytes < 0 ? "less" : "more",
                    spoken(changes[i].category), mostly(changes[i], causes));
  }
  return text;
}

const Moment* in_phase(const Anatomy& anatomy, Phase phase) {
  const auto& found = anatomy.phases[static_cast<std::size_t>(phase)];
  if (found) return &*found;
  return anatomy.peak.phase == phase ? &anatomy.peak : nullptr;
}

// The strategy in the phase of the reference's peak, without a full stop.
std::string change_there(const Anatomy& reference, const Anatomy& strategy,
                         const std::string& reference_name, const std::string& name,
                         const Causes& causes) {
  const auto* there = in_phase(strategy, reference.peak.phase);
  const auto found = there ? changes(reference.peak, *there) : std::vector<Change>{};
  const auto what = !there          ? "allocates nothing"
                    : found.empty() ? "uses about the same memory"
                                    : "uses " + list(found, causes);
  return fmt::format("In {}, where {} peaks, {} {}", spoken(reference.peak.phase), reference_name,
                     name, what);
}

// The other phase whose peak falls most, in words; empty where none falls.
std::string saved_elsewhere(const Anatomy& reference, const Anatomy& strategy) {
  const Moment* before = nullptr;
  const Moment* after = nullptr;
  for (const auto phase : {Phase::kForward, Phase::kBackward, Phase::kOptimizerStep}) {
    const auto* from = in_phase(reference, phase);
    const auto* to = in_phase(strategy, phase);
    if (!from || !to || phase == reference.peak.phase) continue;
    if (same(from->allocated_bytes, to->allocated_bytes)) continue;
    const auto saved = from->allocated_bytes - to->allocated_bytes;
    if (saved > 0 && (!before || saved > before->allocated_bytes - after->allocated_bytes)) {
      before = from;
      after = to;
    }
  }
  if (!before) return {};
  const auto what = list(changes(*before, *after));
  return fmt::format(" It saves memory in {}, whose own peak falls from {} to {}{}.",
                     spoken(before->phase), size(before->allocated_bytes),
                     size(after->allocated_bytes), what.empty() ? "" : fmt::format(" ({})", what));
}

// How the reference stands where the strategy has its peak.
std::string beside(const Anatomy& reference, const Anatomy& strategy,
                   const std::string& reference_name) {
  const auto* before = in_phase(reference, strategy.peak.phase);
  if (!before) return {};
  if (same(before->allocated_bytes, strategy.peak.allocated_bytes))
    return fmt::format(", where {} uses as much", reference_name);
  return fmt::format(", where {} reaches {}", reference_name, size(before->allocated_bytes));
}

std::string outcome(const Anatomy& reference, const Anatomy& strategy,
                    const std::string& reference_name) {
  const auto from = reference.peak.allocated_bytes, to = strategy.peak.allocated_bytes;
  const bool moved = reference.peak.phase != strategy.peak.phase;
  if (same(from, to))
    return fmt::format(", so the peak stays at {}{}.", size(to),
                       moved ? ", now in " + where(strategy.peak) : "") +
           saved_elsewhere(reference, strategy);
  auto text =
      fmt::format(". The peak {} {} ({}), {} {}", to < from ? "is now" : "rises to", size(to),
                  signed_change(from, to), moved ? "in" : "still in", where(strategy.peak));
  if (moved) text += beside(reference, strategy, reference_name);
  text += ".";
  constexpr double kLittle = -1.0;  // percent
  const bool little = to < from && percent_change(from, to) > kLittle;
  return little ? text + saved_elsewhere(reference, strategy) : text;
}

}  // namespace

std::string tell_peak(const Anatomy& anatomy) {
  return fmt::format("The peak is {} allocated, in {}.", size(anatomy.peak.allocated_bytes),
                     where(anatomy.peak));
}

std::string explain(const Anatomy& reference, const Anatomy& strategy,
                    const std::string& reference_name, const std::string& strategy_name,
                    const Causes& causes) {
  return change_there(reference, strategy, reference_name, strategy_name, causes) +
         outcome(reference, strategy, reference_name);
}

}  // namespace peakbench::reports

#include "reports/analysis/rank_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "reports/analysis/findings.h"
#include "reports/analysis/line_names.h"
#include "trace/lines.h"
#include "trace/maxima.h"

namespace peakbench::analysis {
namespace {

constexpr std::string_view kCollectives = "torch/distributed/distributed_c10d.py";
constexpr std::string_view kSerialization = "torch/serialization.py";

// What made it, by its line and the function of PyTorch's that was called there.
struct Maker {
  std::string line, function;
  bool operator<(const Maker& other) const {
    return std::tie(line, function) < std::tie(other.line, other.function);
  }
};

struct Foreign {
  std::set<std::int32_t> ranks;
  std::set<std::string> cards;
  std::int64_t most_bytes = 0;  // of one rank on one GPU
  std::size_t contexts = 0;
};

// "all_gather_object", "torch.load", or empty.
std::string function_of(const trace::Trace& trace, std::int32_t stack) {
  std::string function;
  for (auto at = stack; at != trace::kNone;) {
    const auto& frame = trace.frames[static_cast<std::size_t>(at)];
    const auto file = trace::word_at(trace.files, frame.file);
    if (file.ends_with(kSerialization) && function.empty()) function = "torch.load";
    if (file.ends_with(kCollectives)) function = trace::word_at(trace.functions, frame.function);
    at = frame.parent;
  }
  return function;
}

Maker maker_of(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes,
               int space) {
  const trace::Lifetime* largest = nullptr;
  for (const auto& lifetime : lifetimes) {
    const auto& event = trace.events[lifetime.first];
    if (event.space == space &&
        (largest == nullptr || event.block_bytes > trace.events[largest->first].block_bytes))
      largest = &lifetime;
  }
  if (largest == nullptr) return {};
  const auto stack = trace.events[largest->first].stack;
  return {LineNames(trace).in_words(trace::own_line(trace, stack)), function_of(trace, stack)};
}

// "1", "1 and 2", "0, 1 and 2"
template <class Words>
std::string joined(const Words& words) {
  std::string text;
  std::size_t i = 0;
  for (const auto& word : words) {
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == words.size() ? " and " : ", ", word);
    ++i;
  }
  return text;
}

std::string advice_on(const std::string& function, std::size_t contexts, std::size_t ranks) {
  if (function == "torch.load") return "pass map_location=\"cpu\" to torch.load";
  if (function.empty()) return "call torch.cuda.set_device(local_rank) first";
  return fmt::format(
      "{} restores each tensor on the GPU that it was on, which makes {} CUDA contexts in place of "
      "{}; "
      "move tensors to the host first (.cpu())",
      function, contexts, ranks);
}

using Owners = std::map<std::string, std::int32_t>;  // the rank, by GPU

// Spaces of the trace that are GPUs of other ranks.
std::vector<int> foreign_spaces(const RankTrace& one, const Owners& owners) {
  std::vector<int> spaces;
  for (int space = 0; space < static_cast<int>(one.trace->spaces.size()); ++space) {
    const auto& card = one.trace->spaces[static_cast<std::size_t>(space)];
    const auto owner = owners.find(card);
    if (space != one.trace->own_space && card.starts_with("cuda") && owner != owners.end() &&
        owner->second != one.rank)
      spaces.push_back(space);
  }
  return spaces;
}

void add_foreign(const RankTrace& one, const Owners& owners, std::map<Maker, Foreign>& found) {
  const auto spaces = foreign_spaces(one, owners);
  if (spaces.empty()) return;
  const auto lifetimes = trace::lifetimes(*one.trace);
  for (const auto space : spaces) {
    const auto maker = maker_of(*one.trace, lifetimes, space);
    if (maker.line.empty()) continue;
    auto& foreign = found[maker];
    foreign.ranks.insert(one.rank);
    foreign.cards.insert(one.trace->spaces[static_cast<std::size_t>(space)]);
    foreign.most_bytes = std::max(foreign.most_bytes,
                                  trace::find_peak(*one.trace, lifetimes, space).allocated_bytes);
    ++foreign.contexts;
  }
}

}  // namespace

std::string on_other_ranks(const std::vector<RankTrace>& ranks) {
  Owners owners;
  for (const auto& one : ranks) {
    const auto& own = one.trace->spaces[static_cast<std::size_t>(one.trace->own_space)];
    // Two ranks' cuda:0 may be two GPUs, by CUDA_VISIBLE_DEVICES.
    if (!owners.emplace(own, one.rank).second) return "";
  }
  std::map<Maker, Foreign> found;
  for (const auto& one : ranks) add_foreign(one, owners, found);
  std::string text;
  for (const auto& [maker, foreign] : found)
    text += fmt::format("{}Rank{} {} {} up to {} on {}, {}, made at {}; {}.",
                        text.empty() ? "" : " ", foreign.ranks.size() == 1 ? "" : "s",
                        joined(foreign.ranks), foreign.ranks.size() == 1 ? "has" : "have",
                        in_words(foreign.most_bytes), joined(foreign.cards),
                        foreign.cards.size() == 1 ? "another rank's GPU" : "GPUs of other ranks",
                        maker.line,
                        advice_on(maker.function, foreign.contexts + owners.size(), owners.size()));
  return text;
}

}  // namespace peakbench::analysis

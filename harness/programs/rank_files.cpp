#include "programs/rank_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/nearest.h"
#include "base/printable.h"

namespace peakbench::programs {
namespace {

constexpr std::int64_t kMostRanks = 1'000'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Whether a number follows the word: rank3, rank_3, rank-3, rank=3.
bool says(std::string text, std::string_view word) {
  while (!text.empty() && std::string_view("_-=. ").find(text.back()) != std::string_view::npos)
    text.pop_back();
  if (!text.ends_with(word)) return false;
  const auto before = text.size() - word.size();
  return before == 0 || std::isalpha(static_cast<unsigned char>(text[before - 1])) == 0;
}

enum class Numbering : std::uint8_t { kRank, kLocalRank, kSteps, kUnknown };

Numbering what_follows(const std::string& text, std::optional<Numbering> before) {
  if (says(text, "local_rank") || says(text, "localrank")) return Numbering::kLocalRank;
  if (says(text, "rank")) return Numbering::kRank;
  constexpr std::array kSteps = {"step", "iter", "iteration", "epoch", "time"};
  if (std::ranges::any_of(kSteps, [&](const char* word) { return says(text, word); }))
    return Numbering::kSteps;
  // Composer's MemorySnapshot: rank{rank}.{batch}.memory_snapshot
  return text == "." && before == Numbering::kRank ? Numbering::kSteps : Numbering::kUnknown;
}

// "rank12_step6": {"rank", "_step", ""}, {12, 6} and what these number.
struct Name {
  std::string name;
  std::vector<std::string> texts;
  std::vector<std::int64_t> numbers;
  std::vector<Numbering> meanings;

  explicit Name(std::string given) : name(std::move(given)) {
    const auto stem_text = std::filesystem::path(name).stem().string();
    std::string_view stem = stem_text;
    while (true) {
      const auto digits = std::ranges::find_if(stem, is_digit);
      texts.push_back(lower({stem.begin(), digits}));
      if (digits == stem.end()) return;
      const auto end = std::find_if_not(digits, stem.end(), is_digit);
      std::int64_t number = kMostRanks;  // of more digits than 64 bits hold
      std::from_chars(&*digits, &*digits + (end - digits), number);
      meanings.push_back(what_follows(
          texts.back(), meanings.empty() ? std::nullopt : std::optional(meanings.back())));
      numbers.push_back(number);
      stem = stem.substr(static_cast<std::size_t>(end - stem.begin()));
    }
  }

  std::vector<std::int64_t> all(Numbering kind) const {
    std::vector<std::int64_t> found;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (meanings[i] == kind) found.push_back(numbers[i]);
    return found;
  }
  std::vector<std::int64_t> steps() const { return all(Numbering::kSteps); }
};

using Ranks = std::vector<std::int64_t>;  // of the names, in their order

bool are_different(const Ranks& ranks) {
  return std::set(ranks.begin(), ranks.end()).size() == ranks.size();
}
bool are_ranks(const Ranks& ranks) { return std::ranges::max(ranks) < kMostRanks; }

struct Found {
  Ranks ranks;
  bool is_sure = false;
};

std::optional<Found> said(const std::vector<Name>& all) {
  Found found{{}, true};
  bool any = false;
  for (const auto& name : all) {
    const auto ranks = name.all(Numbering::kRank), others = name.all(Numbering::kUnknown);
    any |= !ranks.empty();
    if (ranks.empty()) found.is_sure = false;
    if (ranks.empty() && others.size() != 1) return std::nullopt;
    found.ranks.push_back(ranks.empty() ? others.front() : ranks.front());
  }
  return any && are_ranks(found.ranks) ? std::optional(found) : std::nullopt;
}

std::optional<Found> said_locally(const std::vector<Name>& all) {
  Found found{{}, true};
  for (const auto& name : all) {
    const auto ranks = name.all(Numbering::kLocalRank);
    if (ranks.empty()) return std::nullopt;
    found.ranks.push_back(ranks.front());
  }
  const bool is_told = are_different(found.ranks) && are_ranks(found.ranks);
  return is_told ? std::optional(found) : std::nullopt;
}

// Names that are alike but for one number, and for those that count steps.
std::optional<Found> only_difference(const std::vector<Name>& all) {
  const auto& first = all.front();
  const auto alike = [&](const Name& name) { return name.texts == first.texts; };
  if (all.size() == 1 || !std::ranges::all_of(all, alike)) return std::nullopt;
  std::optional<Ranks> found;
  for (std::size_t i = 0; i < first.numbers.size(); ++i) {
    Ranks ranks;
    for (const auto& name : all) ranks.push_back(name.numbers[i]);
    if (std::ranges::count(ranks, ranks.front()) == std::ssize(ranks)) continue;
    if (first.meanings[i] == Numbering::kSteps) continue;
    if (found || first.meanings[i] != Numbering::kUnknown || !are_ranks(ranks)) return std::nullopt;
    found = std::move(ranks);
  }
  if (!found) return Found{Ranks(all.size(), 0), true};  // steps of one
  return Found{*found, false};
}

Found in_order(std::size_t count) {
  Found found;
  for (std::size_t i = 0; i < count; ++i) found.ranks.push_back(static_cast<std::int64_t>(i));
  found.is_sure = count == 1;
  return found;
}

Found found_of(const std::vector<Name>& all) {
  if (auto found = said(all)) return *found;
  if (auto found = said_locally(all)) return *found;
  if (auto found = only_difference(all)) return *found;
  return in_order(all.size());
}

}  // namespace

RankFiles ranks_of(std::vector<std::string> names) {
  std::vector<Name> all;
  for (auto& name : names) all.emplace_back(std::move(name));
  std::ranges::sort(all, [](const Name& a, const Name& b) {
    return std::tie(a.texts, a.numbers, a.name) < std::tie(b.texts, b.numbers, b.name);
  });
  const auto found = found_of(all);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < all.size(); ++i) order.push_back(i);
  const auto key = [&](std::size_t i) { return std::pair(found.ranks[i], all[i].steps()); };
  std::ranges::stable_sort(order, {}, key);
  RankFiles files;
  files.is_sure = found.is_sure;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const auto& name = all[order[at]];
    RankFile file{found.ranks[order[at]], name.name};
    if (const auto steps = name.steps(); !steps.empty()) file.step = steps.back();
    if (at + 1 == order.size() || found.ranks[order[at + 1]] != file.rank) {
      files.files.push_back(std::move(file));
      continue;
    }
    if (key(order[at]) == key(order[at + 1]))
      throw std::invalid_argument(fmt::format(
          "has two files of rank {}, {} and {}, and no step in their names distinguishes them; "
          "import one of them, or move it to another folder",
          file.rank, printable(file.name), printable(all[order[at + 1]].name)));
    files.earlier.push_back(std::move(file));
  }
  return files;
}

}  // namespace peakbench::programs

#include "program/rank_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "text/lower.h"

namespace peakbench::program {
namespace {

constexpr std::int64_t kMostRanks = 1'000'000;
using Ranks = std::vector<std::int64_t>;  // of the names, in their order

// "rank12_step6": {"rank", "_step", ""} and {12, 6}.
struct Parts {
  std::vector<std::string> texts;
  std::vector<std::int64_t> numbers;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

Parts parts_of(std::string_view stem) {
  Parts parts;
  while (true) {
    const auto digits = std::ranges::find_if(stem, is_digit);
    parts.texts.push_back(lower({stem.begin(), digits}));
    if (digits == stem.end()) return parts;
    const auto end = std::find_if_not(digits, stem.end(), is_digit);
    std::int64_t number = kMostRanks;  // of more digits than 64 bits hold
    std::from_chars(&*digits, &*digits + (end - digits), number);
    parts.numbers.push_back(number);
    stem = stem.substr(static_cast<std::size_t>(end - stem.begin()));
  }
}

// Whether a number follows the word: rank3, rank_3, rank-3, rank=3.
bool says(std::string text, std::string_view word) {
  while (!text.empty() && std::string_view("_-=. ").find(text.back()) != std::string_view::npos)
    text.pop_back();
  return text.ends_with(word);
}

std::optional<std::int64_t> number_behind_rank(const Parts& parts, bool local) {
  for (std::size_t i = 0; i < parts.numbers.size(); ++i) {
    const bool is_local = says(parts.texts[i], "local_rank") || says(parts.texts[i], "localrank");
    if (is_local == local && says(parts.texts[i], "rank")) return parts.numbers[i];
  }
  return std::nullopt;
}

bool are_ranks(const Ranks& ranks, std::size_t count) {
  return ranks.size() == count && std::set(ranks.begin(), ranks.end()).size() == count &&
         std::ranges::max(ranks) < kMostRanks;
}

std::optional<Ranks> said(const std::vector<Parts>& all) {
  for (const bool local : {false, true}) {
    Ranks ranks;
    for (const auto& parts : all)
      if (const auto number = number_behind_rank(parts, local)) ranks.push_back(*number);
    if (are_ranks(ranks, all.size())) return ranks;
  }
  return std::nullopt;
}

bool counts_something_else(const std::string& text) {
  constexpr std::array kOthers = {"step", "iter", "iteration", "epoch", "time", "rank"};
  return std::ranges::any_of(kOthers, [&](const char* word) { return says(text, word); });
}

// Names that are alike but for one number.
std::optional<Ranks> only_difference(const std::vector<Parts>& all) {
  const auto& texts = all.front().texts;
  const auto alike = [&](const Parts& parts) { return parts.texts == texts; };
  if (all.size() == 1 || !std::ranges::all_of(all, alike)) return std::nullopt;
  std::optional<Ranks> found;
  for (std::size_t i = 0; i < all.front().numbers.size(); ++i) {
    Ranks ranks;
    for (const auto& parts : all) ranks.push_back(parts.numbers[i]);
    if (std::ranges::count(ranks, ranks.front()) == std::ssize(ranks)) continue;
    if (found || counts_something_else(texts[i]) || !are_ranks(ranks, all.size()))
      return std::nullopt;
    found = std::move(ranks);
  }
  return found;
}

}  // namespace

RankFiles ranks_of(std::vector<std::string> names) {
  std::vector<std::pair<Parts, std::string>> sorted;
  for (auto& name : names)
    sorted.emplace_back(parts_of(std::filesystem::path(name).stem().string()), std::move(name));
  std::ranges::sort(sorted, [](const auto& a, const auto& b) {
    return std::tie(a.first.texts, a.first.numbers, a.second) <
           std::tie(b.first.texts, b.first.numbers, b.second);
  });
  std::vector<Parts> all;
  for (const auto& [parts, name] : sorted) all.push_back(parts);
  RankFiles found;
  auto ranks = said(all);
  found.is_sure = ranks.has_value();
  if (!ranks) ranks = only_difference(all);
  for (std::size_t i = 0; i < sorted.size(); ++i)
    found.files.push_back(
        {ranks ? (*ranks)[i] : static_cast<std::int64_t>(i), std::move(sorted[i].second)});
  std::ranges::sort(found.files, {}, &RankFile::rank);
  return found;
}

}  // namespace peakbench::program

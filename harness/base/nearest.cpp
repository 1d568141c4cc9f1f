#include "base/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace peakbench {
namespace {

// Optimal string alignment: three rows of the usual table are enough.
std::size_t edits(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::optional<std::string> shortest_holding(const std::string& name,
                                            const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  if (name.size() < 3) return best;
  for (const auto& candidate : candidates) {
    if (lower(candidate).find(name) == std::string::npos) continue;
    if (!best || candidate.size() < best->size()) best = candidate;
  }
  return best;
}

// Two thirds of the name, four characters at least, are how the candidate begins: linears,
// linear_layers.
std::optional<std::string> longest_shared_start(const std::string& name,
                                                const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  std::size_t longest = std::max<std::size_t>(4, (2 * name.size() + 2) / 3) - 1;
  for (const auto& candidate : candidates) {
    const std::string other = lower(candidate);
    const auto end = std::ranges::mismatch(name, other).in1;
    const auto shared = static_cast<std::size_t>(end - name.begin());
    if (shared <= longest) continue;
    longest = shared;
    best = candidate;
  }
  return best;
}

}  // namespace

std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongest = 200;  // nobody mistypes a longer one; keeps hostile input cheap
  if (name.empty() || name.size() > kLongest) return std::nullopt;
  const std::string wanted = lower(name);
  std::optional<std::string> best;
  std::size_t fewest = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    const std::size_t distance = edits(wanted, lower(candidate));
    if (distance >= fewest) continue;
    fewest = distance;
    best = candidate;
  }
  if (!best) best = shortest_holding(wanted, candidates);
  return best ? best : longest_shared_start(wanted, candidates);
}

std::string bare_name(std::string_view name) {
  std::string bare;
  for (const unsigned char c : name)
    if (std::isalnum(c)) bare += static_cast<char>(std::tolower(c));
  return bare;
}

std::string spelling(std::string_view name) { return bare_name(name.substr(name.rfind('/') + 1)); }

std::string suggestion(std::string_view name, const std::vector<std::string>& candidates) {
  if (candidates.empty()) return "; none is known";
  if (const auto near = nearest(name, candidates)) {
    return fmt::format("; did you mean \"{}\"?", *near);
  }
  return fmt::format("; known: {}", fmt::join(candidates, ", "));
}

}  // namespace peakbench

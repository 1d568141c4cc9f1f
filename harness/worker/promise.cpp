#include "worker/promise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace peakbench::worker {
namespace {

constexpr const char* kNotFinite = "values that are infinite or not a number in ";

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

double distance(double value, double reference) {
  return value == reference ? 0 : std::abs(value - reference);  // equal infinities: inf - inf
}

// NaN is larger than every number.
bool larger(double a, double b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

const Difference* find(const std::vector<Difference>& all, bool (*wanted)(const Difference&)) {
  const auto found = std::find_if(all.begin(), all.end(), wanted);
  return found == all.end() ? nullptr : &*found;
}

// The one that is furthest from the reference, of those that break the promise.
const Difference* worst(const std::vector<Difference>& all, bool to_the_bit) {
  const Difference* worst = nullptr;
  for (const Difference& one : all) {
    if (to_the_bit ? one.identical : one.within) continue;
    if (worst == nullptr || larger(one.largest, worst->largest)) worst = &one;
  }
  return worst;
}

double largest_of(const std::vector<Difference>& all) {
  double largest = 0;
  for (const Difference& one : all)
    if (larger(one.largest, largest)) largest = one.largest;
  return largest;
}

}  // namespace

void compare(Difference& difference, const double* values, const double* reference,
             std::size_t count, const Tolerance& tolerance) {
  for (std::size_t i = 0; i < count; ++i) {
    const double value = values[i], expected = reference[i];
    difference.finite = difference.finite && std::isfinite(value);
    difference.reference_finite = difference.reference_finite && std::isfinite(expected);
    if (same_bits(value, expected)) continue;
    difference.identical = false;
    const double away = distance(value, expected);
    if (larger(away, difference.largest)) difference.largest = away;
    const bool within = away <= tolerance.absolute + tolerance.relative * std::abs(expected);
    difference.within = difference.within && within;
  }
}

result::Equivalence check_promise(result::Equivalence promise,
                                  const std::vector<Difference>& differences) {
  if (const auto* blind =
          find(differences, [](const auto& one) { return !one.reference_finite; })) {
    promise.verdict = "not_checked";
    promise.reason = "the reference case has " + std::string(kNotFinite) + blind->where +
                     ": nothing can be told from it";
    return promise;
  }
  const auto* wrong = worst(differences, promise.promise == "bit_identical");
  promise.max_abs_difference = largest_of(differences);
  promise.verdict = wrong == nullptr ? "held" : "broken";
  if (wrong == nullptr) return promise;
  promise.reason = wrong->finite ? "differs most in " + wrong->where : kNotFinite + wrong->where;
  return promise;
}

result::Equivalence refute(result::Equivalence promise, const std::string& why) {
  if (promise.promise == "bit_identical" && promise.verdict == "held") return promise;
  promise.verdict = "broken";
  promise.reason = why;
  return promise;
}

}  // namespace peakbench::worker

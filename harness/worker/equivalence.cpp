#include "worker/equivalence.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "records/case_json.h"

namespace peakbench::worker {
namespace {

constexpr const char* kNotFinite = "values that are infinite or not a number in ";

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

double distance(double value, double reference) {
  return value == reference ? 0 : std::abs(value - reference);  // equal infinities: inf - inf
}

// NaN is larger than every number.
bool larger(double a, double b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

records::Equivalence judged(records::Equivalence promise, const char* verdict,
                            const std::string& reason) {
  promise.verdict = verdict;
  promise.reason = reason;
  return promise;
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

records::Equivalence check_promise(records::Equivalence promise,
                                   const std::vector<Difference>& differences) {
  const auto blind = std::ranges::find(differences, false, &Difference::reference_finite);
  if (blind != differences.end())
    return judged(promise, "not_checked",
                  "the reference case has " + std::string(kNotFinite) + blind->where +
                      ": nothing can be told from it");
  const auto* wrong = worst(differences, promise.promise == "bit_identical");
  promise.max_abs_difference = largest_of(differences);
  promise.verdict = wrong == nullptr ? "held" : "broken";
  if (wrong == nullptr) return promise;
  promise.reason = wrong->finite ? "differs most in " + wrong->where : kNotFinite + wrong->where;
  return promise;
}

records::Equivalence refute(records::Equivalence promise, const std::string& why) {
  if (promise.promise == "bit_identical" && promise.verdict == "held") return promise;
  return judged(promise, "broken", why);
}

namespace {

// One line of JSON, then every parameter's bytes in its order.
nlohmann::json header_of(const std::vector<Parameter>& parameters,
                         const std::vector<double>& losses) {
  nlohmann::json list = nlohmann::json::array();
  for (const Parameter& parameter : parameters) {
    list.push_back({{"name", parameter.name},
                    {"dtype", c10::toString(parameter.tensor.scalar_type())},
                    {"bytes", parameter.tensor.nbytes()}});
  }
  return {{"parameters", list}, {"losses", records::losses_to_json(losses)}};
}

struct Reference {
  nlohmann::json parameters;
  std::vector<double> losses;
};

Reference read_header(const std::string& line) {
  const nlohmann::json header = nlohmann::json::parse(line);
  const Fields fields(header);
  return {header.at("parameters"), records::read_losses(fields)};
}

// A parameter's values as doubles, which every floating dtype fits into.
std::vector<double> values_of(const at::Tensor& tensor) {
  const at::Tensor doubles = tensor.detach().to(at::kDouble).contiguous();
  const auto* first = doubles.const_data_ptr<double>();
  return {first, first + doubles.numel()};
}

Difference difference_of(const Parameter& parameter, std::vector<char>& bytes,
                         const Tolerance& tolerance) {
  const at::Tensor own = parameter.tensor.detach().contiguous();
  const at::Tensor reference =
      at::from_blob(bytes.data(), own.sizes(), own.options().requires_grad(false));
  Difference difference;
  difference.where = parameter.name;
  const auto a = values_of(own), b = values_of(reference);
  compare(difference, a.data(), b.data(), a.size(), tolerance);
  // Doubles hide the payload of what is not a number.
  difference.identical = std::memcmp(bytes.data(), own.const_data_ptr(), bytes.size()) == 0;
  return difference;
}

Difference difference_of(const std::vector<double>& losses, const std::vector<double>& reference,
                         const Tolerance& tolerance) {
  Difference difference;
  difference.where = "the losses";
  compare(difference, losses.data(), reference.data(), losses.size(), tolerance);
  return difference;
}

}  // namespace

void write_reference(const std::string& path, const std::vector<Parameter>& parameters,
                     const std::vector<double>& losses) {
  std::ofstream file(path, std::ios::binary);
  file << header_of(parameters, losses).dump() << '\n';
  for (const Parameter& parameter : parameters) {
    const at::Tensor whole = parameter.tensor.detach().contiguous();
    file.write(static_cast<const char*>(whole.const_data_ptr()),
               static_cast<std::streamsize>(whole.nbytes()));
  }
  file.flush();
  if (file) return;
  file.close();
  // Half a reference is none. Only what this made: never a device or a link of that name.
  std::error_code ignored;
  if (std::filesystem::symlink_status(path, ignored).type() == std::filesystem::file_type::regular)
    std::filesystem::remove(path, ignored);
  throw std::runtime_error(path + ": the reference's parameters could not be written");
}

records::Equivalence compare_with_reference(const std::string& path, records::Equivalence promise,
                                            const std::vector<Parameter>& parameters,
                                            const std::vector<double>& losses) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  if (!file || !std::getline(file, line))
    return judged(promise, "not_checked", "the reference case left no parameters to compare with");
  const Reference reference = read_header(line);
  if (reference.parameters != header_of(parameters, losses).at("parameters"))
    return judged(promise, "broken", "trains other parameters than the reference case");
  if (reference.losses.size() != losses.size())
    return judged(promise, "broken",
                  "made " + std::to_string(losses.size()) + " losses, the reference case " +
                      std::to_string(reference.losses.size()));
  const Tolerance tolerance{promise.tolerance.value_or(0), promise.relative_tolerance.value_or(0)};
  std::vector<Difference> differences{difference_of(losses, reference.losses, tolerance)};
  std::vector<char> bytes;
  // One parameter at a time: a gigabyte of reference takes no gigabyte of memory.
  for (const Parameter& parameter : parameters) {
    bytes.resize(parameter.tensor.nbytes());
    if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
      return judged(promise, "not_checked",
                    "the reference's parameters are cut short at " + parameter.name);
    differences.push_back(difference_of(parameter, bytes, tolerance));
  }
  return check_promise(std::move(promise), differences);
}

}  // namespace peakbench::worker

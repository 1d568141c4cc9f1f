#include "worker/equivalence.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace peakbench::worker {
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
  return {{"parameters", list}, {"losses", losses}};
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

struct Difference {
  bool identical = true;
  double largest = 0;
  std::string where;
};

void note(Difference& difference, double amount, const std::string& where) {
  difference.identical = false;
  if (amount <= difference.largest && !difference.where.empty()) return;
  difference.largest = amount;
  difference.where = where;
}

// Reads one parameter's bytes at a time: a gigabyte of reference takes no gigabyte of memory.
void compare_parameters(std::ifstream& file, const std::vector<Parameter>& parameters,
                        Difference& difference) {
  std::vector<char> bytes;
  for (const Parameter& parameter : parameters) {
    bytes.resize(parameter.tensor.nbytes());
    if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
      throw std::runtime_error("the reference's parameters are cut short at " + parameter.name);
    }
    if (std::memcmp(bytes.data(), parameter.tensor.const_data_ptr(), bytes.size()) == 0) continue;
    const at::Tensor reference =
        at::from_blob(bytes.data(), parameter.tensor.sizes(), parameter.tensor.options());
    const double largest = (reference.to(at::kDouble) - parameter.tensor.detach().to(at::kDouble))
                               .abs()
                               .max()
                               .item<double>();
    note(difference, largest, parameter.name);
  }
}

result::Equivalence judged(result::Equivalence result, const Difference& difference) {
  result.max_abs_difference = difference.largest;
  const bool held = result.promise == "bit_identical"
                        ? difference.identical
                        : difference.largest <= result.tolerance.value_or(0);
  result.verdict = held ? "held" : "broken";
  if (!held) result.reason = "differs most in " + difference.where;
  return result;
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
  if (!file) throw std::runtime_error(path + ": the reference's parameters could not be written");
}

result::Equivalence compare_with_reference(const std::string& path, result::Equivalence promise,
                                           const std::vector<Parameter>& parameters,
                                           const std::vector<double>& losses) {
  promise.verdict = "not_checked";
  std::ifstream file(path, std::ios::binary);
  std::string line;
  if (!file || !std::getline(file, line)) {
    promise.reason = "the reference case left no parameters to compare with";
    return promise;
  }
  const nlohmann::json reference = nlohmann::json::parse(line);
  if (reference.at("parameters") != header_of(parameters, losses).at("parameters")) {
    promise.verdict = "broken";
    promise.reason = "trains other parameters than the reference case";
    return promise;
  }
  Difference difference;
  const auto reference_losses = reference.at("losses").get<std::vector<double>>();
  if (reference_losses != losses)
    note(difference, largest_difference(reference_losses, losses), "the losses");
  compare_parameters(file, parameters, difference);
  return judged(promise, difference);
}

}  // namespace peakbench::worker

#include "worker/counting.h"

#include <c10/util/StringUtil.h>

#include "recording/dtype_words.h"

namespace peakbench::worker {
namespace {

std::string kind_of(const at::Tensor& tensor) {
  return c10::str(recording::dtype_word(tensor.scalar_type()), " ", tensor.sizes(), " on ",
                  tensor.device());
}

}  // namespace

bool gradient_fits(const Parameter& parameter) {
  const at::Tensor& gradient = parameter.tensor.grad();
  return !gradient.defined() || (gradient.sizes() == parameter.tensor.sizes() &&
                                 gradient.scalar_type() == parameter.tensor.scalar_type() &&
                                 gradient.device() == parameter.tensor.device());
}

std::string misfit_in_words(const Parameter& parameter) {
  return "the gradient of " + parameter.name + " as " + kind_of(parameter.tensor.grad()) +
         ", the parameter is " + kind_of(parameter.tensor);
}

// Empty: the wrapper handed on what it was given.
std::string GivenRule::own_tensor(const std::vector<Parameter>& parameters) const {
  if (whole_ == nullptr) return {};
  for (const Parameter& one : parameters) {
    const bool known = std::ranges::any_of(
        *whole_, [&](const Parameter& given) { return given.tensor.is_same(one.tensor); });
    if (!known) return "a tensor of its own for " + one.name + ", " + kind_of(one.tensor);
  }
  return {};
}

std::string GivenRule::misfit(const std::vector<Parameter>& parameters) const {
  const auto found = std::ranges::find_if_not(parameters, gradient_fits);
  return found == parameters.end() ? "" : misfit_in_words(*found);
}

// Looked into only where a rule failed: what is told is of no use to one that works.
void GivenRule::update(const std::vector<Parameter>& parameters, KernelGrouping grouping) {
  try {
    inner_->update(parameters, grouping);
  } catch (const PluginFailure& failure) {
    if (failure.owner().id != rule_.id) throw;
    const auto own = own_tensor(parameters);
    auto what = misfit(parameters);
    if (what.empty() && is_baseline_) what = own;
    if (!own.empty() && what.empty())
      throw PluginFailure(failure.owner(), failure.call(),
                          std::string(failure.what()) + " (" + giver_.id + " gave it " + own + ")");
    given_by(
        giver_, "update", rule_, [&] { return own.empty() ? "" : what; }, []() { throw; });
  }
}

}  // namespace peakbench::worker

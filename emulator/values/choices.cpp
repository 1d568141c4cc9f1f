#include "values/choices.h"

#include <algorithm>

#include "core/values_hook.h"

namespace peakbench::values {
namespace {

// More of them say no more: the value has its condition.
constexpr std::size_t kMostChoices = 16;

}  // namespace

void Choices::add(const Choice& choice) {
  if (choices_.size() < kMostChoices && std::ranges::find(choices_, choice) == choices_.end())
    choices_.push_back(choice);
}

void Choices::add(const Choices& others) {
  for (const Choice& choice : others.choices_) add(choice);
}

void Choices::tell(bool known) const {
  for (const Choice& choice : choices_)
    if (!choice.unsure || !known)
      peakbench_emulator_unspecified(choice.operation.c_str(), choice.what);
}

}  // namespace peakbench::values

#include "result/case.h"

#include <array>
#include <stdexcept>
#include <utility>

namespace peakbench::result {
namespace {

constexpr std::array<std::pair<Status, const char*>, 9> kNames{{
    {Status::kOk, "ok"},
    {Status::kOutOfMemory, "out_of_memory"},
    {Status::kTimeout, "timeout"},
    {Status::kCrashed, "crashed"},
    {Status::kUnsupported, "unsupported"},
    {Status::kConflict, "conflict"},
    {Status::kNoEffect, "no_effect"},
    {Status::kHostFailure, "host_failure"},
    {Status::kInterrupted, "interrupted"},
}};

}  // namespace

std::string to_string(Status status) {
  for (const auto& [value, name] : kNames) {
    if (value == status) return name;
  }
  throw std::invalid_argument("no such status");
}

Status status_from_string(const std::string& text) {
  for (const auto& [value, name] : kNames) {
    if (text == name) return value;
  }
  throw std::invalid_argument("no such status: " + text);
}

const Verdict* verdict_of(const CaseResult& result) {
  return result.emulation && result.emulation->verdict ? &*result.emulation->verdict : nullptr;
}

}  // namespace peakbench::result

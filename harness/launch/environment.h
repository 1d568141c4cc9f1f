// `environment` of a run: the host's, and what its cases agree on.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "plan/plan.h"
#include "result/case.h"

namespace peakbench::launch {

// Of the worker of all cases; where they have several, each says which LibTorch it ran with, and
// this says none.
nlohmann::json host_environment(const plan::Plan& plan);

// `run` brought up to date with the environments of `cases`: a key takes the value of the cases
// that have it where these agree; where two disagree (the names of two cards) it says nothing of
// the run: then it is `host`'s, or absent.
nlohmann::json run_environment(nlohmann::json run, const nlohmann::json& host,
                               const std::vector<const result::CaseResult*>& cases);

}  // namespace peakbench::launch

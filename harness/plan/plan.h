// From what was asked (command line or suite) and the manifests to cases. No process has run, no torch.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "manifest/manifest.h"
#include "result/job.h"
#include "result/run.h"

namespace peakbench::plan {

// What was asked: lists that multiply. Texts are in the grammar NAME,key=value,...; stacks join with '+'.
struct Request {
  std::string title, suite_file;
  std::vector<std::string> models, strategies, devices{"cpu"}, dtypes{"fp32"};
  std::vector<std::int64_t> batch_sizes{1}, sequence_lengths;  // empty: each model's default
  std::map<std::string, std::map<std::string, std::string>> model_options, strategy_options;  // suite tables: by id
  std::vector<std::map<std::string, std::string>> excludes, includes;  // by model/strategy/device/dtype/batch/seq
  std::vector<result::Published> published;
  std::map<std::string, std::string> device_options;
  std::int64_t steps = 3, warmup = 1, repetitions = 1, timeout_s = 3600, memory_limit_bytes = 0, threads = 0;
  std::uint64_t seed = 0;
};

// A suite's TOML. Errors carry file, line and column; unknown keys the nearest valid one. docs/suites.md lists the keys.
Request read_suite(const std::string& path);

// One case, ready to be launched, or decided already (conflict, unsupported) from manifests alone.
struct PlannedCase {
  result::CaseSpec spec;
  std::optional<result::Status> decided;  // kConflict or kUnsupported
  std::string reason;                     // names both owners
  result::PluginUse model;
  std::vector<result::PluginUse> strategies;  // `baseline` first
  result::Equivalence promise;            // the stack's promise: the weakest of its strategies
};

struct Plan {
  Request request;
  std::string reference;  // the stack named first
  std::vector<PlannedCase> cases;
};

// Throws ConfigError for unknown names (nearest suggested), options out of range, a strategy twice in a stack, ...
Plan make_plan(const Request& request, const manifest::Found& plugins);

}  // namespace peakbench::plan

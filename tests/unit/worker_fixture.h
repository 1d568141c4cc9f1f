// Worker processes that behave as they are told (tests/support/fake_worker.py), run as a case's
// are.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "launch/runner.h"
#include "records/run_files.h"
#include "support/scratch.h"

namespace peakbench::launch {

using testing::ScratchFolder;

// Both ways of starting a worker hold what it does.
enum class Way { kFresh, kForked };

class WorkerTest : public ::testing::TestWithParam<Way> {
 protected:
  WorkerReport run(const std::string& behaviour) {
    auto order = worker(behaviour);
    order.timeout = timeout;
    order.rss_limit_bytes = rss_limit;
    Listener listener;
    listener.progress = [&](const records::Progress& at) {
      progress.push_back(at);
      std::this_thread::sleep_for(slow_listener);
    };
    listener.tick = [&] { ++ticks; };
    listener.warn = [&](const std::string& warning) { warnings.push_back(warning); };
    order.forked = GetParam() == Way::kForked;
    return ProcessRunner().run(order, listener);
  }

  WorkerOrder worker(const std::string& behaviour) const {
    using records::CaseFile;
    WorkerOrder order;
    order.program = GetParam() == Way::kForked ? PEAKBENCH_FORKING_WORKER : PEAKBENCH_FAKE_WORKER;
    order.job.case_id = "m/s/cpu/fp32/b1";
    order.job.model_plugin.selection = {"m", {{"behaviour", behaviour}}};
    order.job.device = "cpu";
    order.job.dtype = "fp32";
    order.job.steps = 2;
    order.job.warmup = 0;
    order.job.result_path = scratch / name_of(CaseFile::kMemoryResult);
    order.job_path = scratch / name_of(CaseFile::kMemoryJob);
    order.log_path = log_path;
    return order;
  }

  ScratchFolder scratch;
  std::string log_path = scratch / "worker.log";
  std::chrono::seconds timeout{60};
  std::int64_t rss_limit = 0;
  std::vector<records::Progress> progress;
  std::vector<std::string> warnings;
  std::chrono::milliseconds slow_listener{0};  // a line of progress keeps the listener so long
  int ticks = 0;
};

inline std::string name_of(const ::testing::TestParamInfo<Way>& way) {
  return way.param == Way::kForked ? "Forked" : "Fresh";
}

inline ::testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << '"' << text << "\" does not contain \"" << part << '"';
}

}  // namespace peakbench::launch

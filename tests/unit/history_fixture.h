// A history in a folder of its own, and runs to file in it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/errors.h"
#include "reports/trends/history.h"
#include "support/example_run.h"
#include "support/scratch.h"

namespace peakbench::trends {

// Two cases: peaks of so many bytes; `day` tells runs apart.
inline records::Run run_of(int day, std::int64_t bytes, const std::string& libtorch = "2.11.0") {
  auto run = peakbench::testing::example_run();
  run.status = "complete";
  run.pending.clear();
  run.created = "2026-01-" + std::string(day < 10 ? "0" : "") + std::to_string(day) + "T03:04:05Z";
  run.environment = {{"libtorch", libtorch}, {"commit", "abc"}, {"cpu", "A processor"}};
  run.cases[0].memory->peak_allocated_bytes = bytes;
  run.cases[0].memory->peak_requested_bytes = bytes - 511;
  auto other = run.cases[0];
  other.spec.id = "vit-l-16/baseline/cpu/fp32/b1";
  other.spec.device = "cpu";
  other.emulation.reset();
  run.cases.push_back(other);
  return run;
}

inline std::vector<analysis::CaseParts> some_parts() {
  return {
      {"a case", {{"backward", "forward", "activation", "blocks.0.mlp", "aten::mm", 100, 512}}}};
}

class Histories : public ::testing::Test {
 protected:
  History open() { return History::open_to_write(path_, 200); }
  Added add(int day, std::int64_t bytes, const Labels& labels = {"main", "c0ffee", "", ""}) {
    return open().add(run_of(day, bytes), some_parts(), labels);
  }
  std::string error_of_reading() {
    return peakbench::testing::message_of<ConfigError>(
        [&] { History::open_to_read(path_, 200).runs({}); });
  }
  std::string error_of_adding() {
    return peakbench::testing::message_of<ConfigError>([&] { add(28, 5000); });
  }
  void sql(const std::string& text) { sqlite::Database::open_read_write(path_).execute(text); }

  peakbench::testing::ScratchFolder folder_;
  std::string path_ = folder_ / "h.sqlite";
};

}  // namespace peakbench::trends

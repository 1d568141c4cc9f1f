// How the figures were obtained: command, environment, settings; and what was not measured.
#pragma once

#include <string>
#include <vector>

#include "reports/report/figures.h"
#include "reports/report/trace_view.h"

namespace peakbench::reports {

struct DeviceView {
  std::string device;
  std::vector<FactView> facts;

  FieldValues fields() const {
    return {{"device", device, "As in the case id"},
            {"facts", facts, "Card, driver, processor's capability"}};
  }
  bool operator==(const DeviceView&) const = default;
};

struct RunView {
  std::string title, created, status, command, suite;
  std::vector<FactView> environment;
  std::vector<DeviceView> devices;
  std::vector<FactView> settings;

  FieldValues fields() const {
    return {{"title", title, "The run's title"},
            {"created", created, "When, for people"},
            {"status", status, "complete, interrupted, running"},
            {"command", command, "As typed, quoted for a shell"},
            {"suite", suite, "Suite file"},
            {"environment", environment, "Where it ran"},
            {"devices", devices, "What each device of the run was, once"},
            {"settings", settings, "How it was measured"}};
  }
};

RunView run_view(const result::Run& run);

struct MissingView {
  std::string what, reason, count;
  bool one = false;
  std::vector<std::string> cases;

  FieldValues fields() const {
    return {{"what", what, "What is missing"},
            {"reason", reason, "Why"},
            {"count", count, "How many cases"},
            {"one", one, "It is one case"},
            {"cases", cases, "Their ids, the first few"}};
  }
};

std::vector<MissingView> not_measured_view(const std::vector<result::Run>& runs,
                                           const Anatomies& anatomies);

}  // namespace peakbench::reports

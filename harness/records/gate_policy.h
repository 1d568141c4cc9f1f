// What a team lets pass: by how much a figure may grow before it counts as worse, and which
// outcomes stop a gate. Set per suite (its table `gate`), kept in run.json's settings, overridden
// on the command line.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace peakbench::records {

// How much more than `base` is let pass: a count of bytes or a part of the base.
struct Tolerance {
  std::int64_t bytes = 0;
  double fraction = 0;

  std::int64_t allowed(std::int64_t base) const;
};

struct GatePolicy {
  // Emulated memory is deterministic: one byte more is a change of the code.
  Tolerance requested, allocated;
  // Segments are cut by size classes: a byte may cost one, or none.
  Tolerance reserved{0, 0.02};
  // Slower or faster by less than this is `same`; nullopt: speed is shown and never stops a gate.
  std::optional<double> throughput = 0.02;
  // How often a build that is no slower may be called worse, one-sided.
  double false_alarms = 0.01;
  bool failed_fails = true;   // a case that ended ok, or is new, and now does not end ok
  bool missing_fails = true;  // a case of BASE that NEW lacks
  bool verdict_fails = true;  // an emulated case whose figures were relied on more in BASE
  // A phase whose own maximum grew; not: the peak alone is held, of every space and rank.
  bool phases_fail = true;
};

// requested, allocated, reserved, throughput, false_alarms, failed, missing, verdict, phases.
const std::vector<std::string>& gate_keys();

// `text` as typed: 0, 512, 1MiB, 0.5% for memory; 2%, off for throughput; 1% for false_alarms;
// fail, pass. Throws ConfigError that begins with `where` and says what was expected.
void set_gate(GatePolicy& policy, const std::string& key, const std::string& text,
              const std::string& where);

// Texts by key: what set_gate() reads.
nlohmann::json to_json(const GatePolicy& policy);

}  // namespace peakbench::records

#pragma once

#include <string>
#include <vector>

namespace peakbench::records {

// The facts in run.json's `environment` and `settings`, and what a difference in them means. One
// table for all code that continues, merges, divides or compares runs.

enum class FactOf { kEnvironment, kSettings };

struct RunFact {
  const char* name;
  FactOf of;
  bool is_build = false;    // which program: figures of two builds are no run
  bool is_resumed = false;  // a run is only continued if it is equal
  bool is_merged = false;   // runs are joined only where it is the same
  bool is_machine = false;  // a case says it of itself where it ran on another machine than its run
  bool makes_times = false;    // times are compared only where it is the same
  bool is_incidental = false;  // says nothing about a figure
};

const std::vector<RunFact>& run_facts();

// Names of the facts with this property, in the order in which differences are reported:
// names_where(FactOf::kSettings, &RunFact::is_merged).
std::vector<std::string> names_where(FactOf of, bool RunFact::*holds);

// The builds of the plugins that a case was measured with. Figures of two builds are different
// figures, whatever the plugin's name.

// A plugin's library, as what the case has of it.
struct PluginBuild {
  std::string kind;    // model | strategy | script: of a program, which has no library
  std::string id;      // "vit-l-16", "lora"
  std::string file;    // its name, without the folder: "lora.so"
  std::string sha256;  // of its bytes, 64 hexadecimal digits; empty: it could not be read
  bool operator==(const PluginBuild&) const = default;
};

inline constexpr const char* kScript = "script";

// Enough of a hash to tell two builds apart in a sentence.
std::string short_hash(const std::string& sha256);

struct PluginChange {
  std::string id, file;     // as they are now
  std::string before, now;  // SHA-256; empty: unknown
  std::string kind;
};

// What differs between two records of the same case: other content under the same id, however the
// file is called.
std::vector<PluginChange> changed_plugins(const std::vector<PluginBuild>& before,
                                          const std::vector<PluginBuild>& now);

}  // namespace peakbench::records

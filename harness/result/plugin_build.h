// Of which build the plugins are that a case was measured with: figures of two builds are two
// figures, whatever the plugin's name.
#pragma once

#include <string>
#include <vector>

namespace peakbench::result {

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
  std::string before, now;  // SHA-256; empty: not known
  std::string kind;
};

// What differs between two records of the same case: other content under the same id, however the
// file is called.
std::vector<PluginChange> changed_plugins(const std::vector<PluginBuild>& before,
                                          const std::vector<PluginBuild>& now);

}  // namespace peakbench::result

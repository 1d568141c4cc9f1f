// What a plugin says of itself, read from the ELF section `.peakbench` of its shared library: no
// plugin code runs.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planning/configured.h"

namespace peakbench::planning {

inline constexpr const char* kSection = ".peakbench";

enum class Kind { kModel, kStrategy };
enum class OptionType { kInteger, kNumber, kBoolean, kString, kChoice, kPath, kParts };

struct Option {
  std::string name, summary, unit;
  OptionType type = OptionType::kInteger;
  nlohmann::json default_value;
  std::optional<double> minimum, maximum;
  std::vector<std::string> choices;  // kChoice only
  // kChoice only: the facts that a model must have for a choice.
  std::map<std::string, std::vector<std::string>> needs = {};
};

// A strategy that another cannot be stacked with, beyond what their slots say.
struct Conflict {
  std::string id, reason;  // the reason as a sentence
};

// Parts for which a model has no separate linear layer.
struct MissingLinears {
  std::vector<std::string> parts;
  std::string reason;  // as a sentence
};

// Number of steps until a strategy's memory has reached all of its maxima: the value of an integer
// option, if one is named, plus a number.
struct Period {
  std::string option;
  std::int64_t steps = 1;  // without an option: all of them
};

// A strategy's effect on four kinds of memory, in words; empty: none.
struct Cost {
  std::string parameters, gradients, optimizer_state, activations;
};

// One id that a library offers.
struct Entry {
  std::string id, title, summary, source_url;
  std::vector<std::string> aliases;  // other names that users may type
  std::vector<Option> options;

  // Strategies.
  int order = 0;                      // place in the canonical order of a stack
  std::vector<std::string> slots;     // owned; two owners of one slot conflict
  std::vector<std::string> wrappers;  // lists of the recipe it adds to: "gradient_transforms", ...
  // updates_in_backward | needs_all_gradients | replays_steps | changes_trained_set |
  // decides_on_host
  std::vector<std::string> capabilities;
  std::vector<std::string> needs;  // facts a model must have: "blocks", "linear_layers", ...
  std::vector<std::string> requires_slots;  // some other strategy of the stack must take them
  std::vector<Conflict> conflicts;
  std::optional<Period> period;  // nullopt: the first steps show it
  Cost cost;
  std::string promise;  // bit_identical | within_tolerance | different_problem
  std::optional<double> tolerance,
      relative_tolerance;  // within_tolerance: absolute, and times the reference

  // Models.
  std::string family;
  std::vector<std::string>
      facts;  // "blocks", "linear_layers", "tied_embeddings", "packed_attention", ...
  std::vector<std::string> linears;  // parts of linears(): "q_proj", "mlp", ...; empty: not
                                     // declared
  std::vector<MissingLinears> missing_linears;
  bool has_sequence = false;
  std::int64_t default_sequence_length = 0;
  std::int64_t parameters = 0;  // with default options
  // How the loss of a batch is composed, which decides whether parts of it add up to it: per_sample
  // | per_token (a mean over the labels that count) | whole_batch.
  std::string loss = "per_sample";
};

// Steps until the strategy's memory has reached all of its maxima, with these options (all of
// them); 1 if its manifest does not declare it.
std::int64_t period_of(const Entry& strategy, const nlohmann::json& options);

// How a library was built. Every field of a plugin's must equal its worker's.
struct Stamp {
  int sdk_revision = 0;
  std::string libtorch_version, libtorch_git_version, libtorch_cuda, cxx_abi;
};
Stamp own_stamp();  // what this program was configured with
// Each mismatch as "FIELD: plugin has X, this Peakbench needs Y"; empty when they agree.
std::vector<std::string> compare(const Stamp& plugin, const Stamp& own);

struct Plugin {
  std::string path;
  Kind kind = Kind::kStrategy;
  std::vector<Entry> entries;
  Stamp stamp;
};

// Throws PluginError: not an ELF file, no section, broken JSON, a missing or unknown field (all
// with path and field).
Plugin read_plugin(const std::string& path);

struct Found {
  std::vector<Plugin> plugins;        // usable: manifest valid, stamp equal, ids unique
  std::vector<std::string> problems;  // one sentence a plugin that is not, with its path
};

// A folder to look into, and who named it, for messages: an option, a variable, a place in a suite.
struct Folder {
  Folder(std::string where, std::string who = "--plugins")
      : path(std::move(where)), named_by(std::move(who)) {}
  std::string path, named_by;
};
// Every *.so below each folder, in name order. A folder that is missing or holds no plugin throws
// ConfigError. `needed`: the stamp of the worker that is to load them.
Found discover(const std::vector<Folder>& folders, const Stamp& needed);

}  // namespace peakbench::planning

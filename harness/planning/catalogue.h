// The ids that the plugins offer, and the options of one as chosen: named, typed, in range,
// complete.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planning/manifest.h"
#include "planning/selection.h"
#include "records/job.h"

namespace peakbench::planning {

// One id with where it comes from. Points into the Found that the catalogue was made from.
struct Offer {
  const planning::Entry* entry = nullptr;
  std::string path;
};

// An offer with the options it was chosen with.
struct Choice {
  Offer offer;
  records::PluginUse use;
};

using OptionTexts = std::map<std::string, std::string>;

// Of a suite, by id.
using OptionTables = std::map<std::string, OptionTexts>;

class Catalogue {
 public:
  // `found` must outlive this.
  explicit Catalogue(const planning::Found& found);

  // By its id, or by another spelling of it or of an alias (spelling() in base/nearest.h), if that
  // is unique. Throws ConfigError with the nearest id.
  const Offer& find(planning::Kind kind, const std::string& name) const;

  // Typed options come before the suite's table for its id, and that comes before the defaults.
  // Throws ConfigError: unknown id or option (names the nearest), a value of another type or out of
  // range (names what is expected).
  Choice choose(planning::Kind kind, const TypedSelection& typed, const OptionTables& tables) const;

  // One option's value, or ConfigError.
  nlohmann::json value(const Offer& offer, const std::string& name, const std::string& text) const;

 private:
  std::map<planning::Kind, std::map<std::string, Offer>> offers_;
  std::vector<std::string> problems_;
};

const char* to_string(planning::Kind kind);  // model, strategy

// All of its options, with the defaults of its manifest.
nlohmann::json default_options(const planning::Entry& entry);

}  // namespace peakbench::planning

#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "planning/manifest.h"

namespace peakbench::planning {

// The words that a manifest may use. docs/how-to/plugins.md lists the same.

// The slots of a recipe, each with one owner.
const std::vector<std::string>& slots();
// The lists of a recipe that strategies add to.
const std::vector<std::string>& wrappers();
// What a strategy does or needs that decides what it can be stacked with.
const std::vector<std::string>& capabilities();
// What a model can state and a strategy can need.
const std::vector<std::string>& facts();
// Parts of a model that linear layers belong to; its own ones have a dot, as facts.
const std::vector<std::string>& parts();
bool is_part(const std::string& name);
const std::vector<std::string>& promises();

// What a strategy declares, directly or by what it adds to: gradient transforms run once on all
// gradients, so they need all of them.
const std::vector<std::string>& losses();

bool updates_in_backward(const Entry& strategy);
bool needs_all_gradients(const Entry& strategy);

// Ids and names are written as NAME,key=value and joined with '+', so they may not contain these
// characters. Allowed: lower-case letters, digits and those of `also`; a letter or a digit first;
// 64 at most.
bool is_name(const std::string& text, const char* also);
inline constexpr const char* kIdAlso = "._-";

// All mistakes of a manifest, to be reported to its author at once.

class Problems {
 public:
  // Runs `read`, which throws FieldError where something is wrong; that is kept, and false
  // returned.
  template <class Read>
  bool check(Read&& read) {
    try {
      std::forward<Read>(read)();
      return true;
    } catch (const FieldError& error) {
      texts_.push_back(error.what());
      return false;
    }
  }

  void add(std::string text) { texts_.push_back(std::move(text)); }

  // Reports each unknown key, with the nearest known one.
  void check_keys(const Fields& fields, const std::vector<std::string>& known);

  bool empty() const { return texts_.empty(); }
  std::vector<std::string> take() { return std::move(texts_); }

 private:
  std::vector<std::string> texts_;
};

// Values that manifests hold in several places. All throw FieldError.

// Not empty.
std::string read_text(const Fields& fields, const std::string& key);

// One of `known`, or the nearest is named.
std::string read_one_of(const Fields& fields, const std::string& key,
                        const std::vector<std::string>& known);

// Calls `check` with each text of the list `key` and its pointer; a missing list is empty. A text
// that is there twice is an error.
std::vector<std::string> read_names(
    const Fields& fields, const std::string& key,
    const std::function<void(const std::string& name, const std::string& pointer)>& check);

// The same for facts about models: known ones, or those with an author's prefix.
std::vector<std::string> read_facts(const Fields& fields, const std::string& key);

}  // namespace peakbench::planning

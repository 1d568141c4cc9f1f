// The words that a manifest may use. docs/how-to/plugins.md lists the same.
#pragma once

#include <string>
#include <vector>

#include "manifest/manifest.h"

namespace peakbench::manifest {

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

// A fact that somebody's models and strategies agree on between themselves has a dot:
// "acme.packed".
bool is_own_fact(const std::string& name);

// What a strategy declares, directly or by what it adds to: gradient transforms run once on all
// gradients, so they need all of them.
const std::vector<std::string>& losses();

bool updates_in_backward(const Entry& strategy);
bool needs_all_gradients(const Entry& strategy);

// Ids and names are typed in NAME,key=value and joined with '+', so they hold none of these
// characters: small letters, digits and those of `also`, a letter or a digit first, 64 at most.
bool is_name(const std::string& text, const char* also);
inline constexpr const char* kIdAlso = "._-";

}  // namespace peakbench::manifest

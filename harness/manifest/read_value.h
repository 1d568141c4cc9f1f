// Values that manifests hold in several places. All throw FieldError.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "json/fields.h"

namespace peakbench::manifest {

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

// The same, of facts of models, each known or somebody's own.
std::vector<std::string> read_facts(const Fields& fields, const std::string& key);

}  // namespace peakbench::manifest

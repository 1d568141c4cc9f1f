// Everything that is wrong with a manifest: an author is told of all mistakes at once.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "json/fields.h"

namespace peakbench::manifest {

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

  // Each key that is none of these, with the nearest one.
  void check_keys(const Fields& fields, const std::vector<std::string>& known);

  bool empty() const { return texts_.empty(); }
  std::vector<std::string> take() { return std::move(texts_); }

 private:
  std::vector<std::string> texts_;
};

}  // namespace peakbench::manifest

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "peakbench/recipe.h"
#include "records/case.h"

namespace peakbench::worker {

// Is a promise about training held? Pure functions of numbers; where the numbers come from is
// equivalence.h's business.

struct Tolerance {
  double absolute = 0, relative = 0;
};

// How far one parameter, or the losses, are from the reference's.
struct Difference {
  std::string where;      // "heads.head.weight", "the losses"
  bool identical = true;  // every value the same, to the bit
  // The largest |value - reference|; NaN as soon as one of them is not a number.
  double largest = 0;
  bool within = true;  // |value - reference| <= absolute + relative * |reference|, everywhere
  bool finite = true;  // every value
  bool reference_finite = true;  // every value of the reference
};

// Takes in `count` more values. Equal infinities differ by nothing; everything that is not a number
// is out of any tolerance.
void compare(Difference& difference, const double* values, const double* reference,
             std::size_t count, const Tolerance& tolerance);

// Fills verdict, max_abs_difference and reason of `promise`, which contains promise and tolerances.
// Without a finite reference the verdict is not_checked.
records::Equivalence check_promise(records::Equivalence promise,
                                   const std::vector<Difference>& differences);

// Of a promise that says what the baseline does, where `why` (not empty) says that the steps did
// something else. Broken, unless every bit was found to be the reference's all the same.
records::Equivalence refute(records::Equivalence promise, const std::string& why);

// Does a strategy train as it promises? The reference case leaves its losses and trained parameters
// in a file; the others compare theirs with it, to the bit. The verdict itself is equivalence.h's.

// Parameters must be on the CPU. Throws std::runtime_error with the path if the file cannot be
// written; no part of it is left.
void write_reference(const std::string& path, const std::vector<Parameter>& parameters,
                     const std::vector<double>& losses);

// Fills verdict, max_abs_difference and reason of `promise` (which brings promise, tolerances and
// reference_case). A reference that is missing or cut short is not_checked.
records::Equivalence compare_with_reference(const std::string& path, records::Equivalence promise,
                                            const std::vector<Parameter>& parameters,
                                            const std::vector<double>& losses);

}  // namespace peakbench::worker

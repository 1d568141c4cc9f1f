// Is a promise about training held? Pure functions of numbers; where the numbers come from is
// equivalence.h's business.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "result/case.h"

namespace peakbench::worker {

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

// Fills verdict, max_abs_difference and reason of `promise`, which brings promise and tolerances.
// Against a reference that is not finite nothing can be told: not_checked.
result::Equivalence check_promise(result::Equivalence promise,
                                  const std::vector<Difference>& differences);

// Of a promise that says what the baseline does, where `why` (not empty) says that the steps did
// something else. Broken, unless every bit was found to be the reference's all the same.
result::Equivalence refute(result::Equivalence promise, const std::string& why);

}  // namespace peakbench::worker

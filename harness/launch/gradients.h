// Whether a case trains the parameters that its reference trains, told without any value: by those
// that some step gave no gradient to.
#pragma once

#include "result/case.h"

namespace peakbench::launch {

// Makes the promise of `one` broken where they differ; true: it did. Not where all bits were found
// to be the reference's, and not where the host read unknown values of an emulated card, by which
// it may have decided what runs.
bool compare_gradients(result::CaseResult& one, const result::CaseResult& reference);

}  // namespace peakbench::launch

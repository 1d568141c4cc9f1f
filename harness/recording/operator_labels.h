// Tells the recorder which operator runs, and in backward which module its forward operator
// belonged to.
#pragma once

#include "recording/recorder.h"

namespace peakbench::recording {

// Adds a record function for the rest of the process; call once, before the first operator. A
// forward operator and its backward node share a sequence number (per forward thread): modules are
// looked up by it.
void install_operator_labels(Recorder& recorder);

// Forgets the sequence numbers of the step before, which will not be asked for again.
void forget_sequence_numbers();

}  // namespace peakbench::recording

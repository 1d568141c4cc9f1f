// Which memory the handles of the vendor's libraries hold.
#pragma once

#include "device/tracing.h"

namespace peakbench::device {

// Calls `visit` for each workspace that PyTorch gave to a handle of cuBLAS or cuBLASLt and keeps
// for it. Where this LibTorch keeps none (2.15 takes one for each call) there are none to visit.
void visit_kept_workspaces(const Tracing::VisitWorkspace& visit);

}  // namespace peakbench::device

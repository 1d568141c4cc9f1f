// Graphs of a CUDA card for strategies (peakbench/device_graph.h), as torch.cuda.graph makes them.
#pragma once

namespace peakbench::device {

// From then on make_device_graph() gives graphs of the current card.
void offer_cuda_graphs();

}  // namespace peakbench::device

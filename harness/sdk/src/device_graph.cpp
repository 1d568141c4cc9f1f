#include "peakbench/device_graph.h"

namespace peakbench {
namespace {
DeviceGraphMaker the_graph_maker = nullptr;  // set once by the device before any strategy exists
}

std::unique_ptr<DeviceGraph> make_device_graph() {
  return the_graph_maker == nullptr ? nullptr : the_graph_maker();
}

void set_device_graph_maker(DeviceGraphMaker maker) { the_graph_maker = maker; }

}  // namespace peakbench

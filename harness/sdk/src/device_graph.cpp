#include "peakbench/device_graph.h"

#include <atomic>

namespace peakbench {
namespace {
DeviceGraphMaker the_graph_maker = nullptr;  // set once by the device before any strategy exists
std::atomic<std::int64_t> restored{0};
}  // namespace

std::unique_ptr<DeviceGraph> make_device_graph() {
  return the_graph_maker == nullptr ? nullptr : the_graph_maker();
}

void set_device_graph_maker(DeviceGraphMaker maker) { the_graph_maker = maker; }

void random_state_restored() { ++restored; }

std::int64_t random_states_restored() { return restored; }

}  // namespace peakbench

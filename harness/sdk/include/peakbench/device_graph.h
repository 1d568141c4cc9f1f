// Work of the device, recorded once and replayed (a CUDA graph), for strategies that are built on
// it.
#pragma once

#include <functional>
#include <memory>

namespace peakbench {

// All of it on the thread that runs the step. What `work` allocates while it is captured comes from
// a pool of the graph's own, which stays reserved as long as the graph lives; what of it is still
// referenced afterwards has the replay's results, always at the same addresses.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  // Runs the work on another stream, before it is captured: libraries choose kernels and make what
  // they keep with their first calls.
  virtual void warm_up(const std::function<void()>& work) = 0;
  // Once. Nothing is computed: `replay` does.
  virtual void capture(const std::function<void()>& work) = 0;
  virtual void replay() = 0;
};

// A new graph; nullptr where the case's device has none.
std::unique_ptr<DeviceGraph> make_device_graph();

// The device's, once, before any strategy is made.
using DeviceGraphMaker = std::unique_ptr<DeviceGraph> (*)();
void set_device_graph_maker(DeviceGraphMaker maker);

}  // namespace peakbench

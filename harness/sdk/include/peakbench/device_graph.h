// Work of the device, recorded once and replayed (a CUDA graph), for strategies that are built on
// it.
#pragma once

#include <cstdint>
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
  // they keep with their first calls. The random numbers that it draws are drawn again later.
  virtual void warm_up(const std::function<void()>& work) = 0;
  // Once. Nothing is computed: `replay` does.
  virtual void capture(const std::function<void()>& work) = 0;
  virtual void replay() = 0;
  // Whether the last replay drew random numbers, anew as each does.
  virtual bool draws_random_numbers() const = 0;
};

// A new graph; nullptr where the case's device has none.
std::unique_ptr<DeviceGraph> make_device_graph();

// The device's, once, before any strategy is made.
using DeviceGraphMaker = std::unique_ptr<DeviceGraph> (*)();
void set_device_graph_maker(DeviceGraphMaker maker);

// Who puts a random generator back to an earlier state, to draw the same numbers a second time,
// says so: a generator that is being captured does not go back. From any thread.
void random_state_restored();
// How often that was said in this process.
std::int64_t random_states_restored();

}  // namespace peakbench

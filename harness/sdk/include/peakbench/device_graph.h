// A device graph records work of the device once and replays it, as a CUDA graph does. Strategies
// that replay steps are built on it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace peakbench {

// All functions are called on the thread that runs the step.
//
// Memory that `work` allocates during capture comes from the graph's own pool, which stays reserved
// as long as the graph lives. A captured tensor that is still referenced afterwards holds the
// results of the last replay, always at the same address.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  // Runs `work` on another stream before it is captured. Libraries choose their kernels and
  // allocate what they keep during their first calls. The random state is restored afterwards, so
  // later work draws the same random numbers again.
  virtual void warm_up(const std::function<void()>& work) = 0;
  // Captures `work`. Call it once. The capture computes nothing; `replay` computes.
  virtual void capture(const std::function<void()>& work) = 0;
  // Runs the captured work. If the work draws random numbers, each replay draws new ones.
  virtual void replay() = 0;
  // Returns whether the last replay drew random numbers.
  virtual bool draws_random_numbers() const = 0;
};

// Returns a new graph, or nullptr if the case's device has no graphs.
std::unique_ptr<DeviceGraph> make_device_graph();

// Sets the function that makes graphs. The device calls it once, before any strategy is made.
using DeviceGraphMaker = std::unique_ptr<DeviceGraph> (*)();
void set_device_graph_maker(DeviceGraphMaker maker);

// Reports that a random generator was set back to an earlier state, to draw the same numbers again.
// Code that does so must call this function, because a generator cannot go back while it is being
// captured. It may be called on any thread.
void random_state_restored();
// Returns how often random_state_restored was called in this process.
std::int64_t random_states_restored();

}  // namespace peakbench

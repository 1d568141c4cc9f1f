// Work on several numbers at a time, each on one of a few threads. What the threads report is
// passed to the caller on the caller's thread, one event after another.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "launch/runner.h"

namespace peakbench::launch {

// Does the work on this number, on any thread.
using Work = std::function<void(std::size_t, const Listener&)>;

// Called on the caller's thread. What is not set does nothing.
struct Callbacks {
  std::function<void(std::size_t)> started = [](std::size_t) {};
  std::function<void(std::size_t, const records::Progress&)> progress =
      [](std::size_t, const records::Progress&) {};
  std::function<void(const std::string&)> warning = [](const std::string&) {};
  std::function<void(std::size_t)> ended = [](std::size_t) {};
  std::function<void()> tick = [] {};  // every few milliseconds
};

// Numbers that are worked on one after another, such as cases that share a card.
using Lane = std::vector<std::size_t>;

// Works on the lanes, begun in this order, at most `jobs` at a time. After a Ctrl-C, and where one
// of the functions throws, no work is begun any more; what is under way ends, and what was thrown
// is thrown again.
void run_in_lanes(const std::vector<Lane>& lanes, std::size_t jobs, const Work& work,
                  const Callbacks& callbacks);
// Numbers 0 to `count`, each by itself.
void run_each(std::size_t count, std::size_t jobs, const Work& work, const Callbacks& callbacks);

}  // namespace peakbench::launch

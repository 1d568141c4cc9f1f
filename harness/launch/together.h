// Several cases' memory workers at a time, each on a thread of its own. What they tell is told on
// the caller's thread, one thing after another. Cases that share a card are one after another.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/runner.h"
#include "records/case.h"

namespace peakbench::launch {

// Measures the case with this number, from any thread; nullopt: interrupted.
using Measure = std::function<std::optional<records::CaseResult>(std::size_t, const Listener&)>;

// What is not set is heard by nobody.
struct Hearing {
  std::function<void(std::size_t)> started = [](std::size_t) {};
  std::function<void(std::size_t, const records::Progress&)> progress =
      [](std::size_t, const records::Progress&) {};
  std::function<void(const std::string&)> warning = [](const std::string&) {};
  std::function<void(std::size_t, std::optional<records::CaseResult>)> ended =
      [](std::size_t, const std::optional<records::CaseResult>&) {};
  std::function<void()> tick = [] {};  // every few milliseconds
  // Before a case is measured, which waits for it; none: there is nothing to prepare.
  std::function<void(std::size_t)> prepare = nullptr;
};

// Numbers of cases, measured one after another.
using Lane = std::vector<std::size_t>;

// Lanes, begun in this order, at most `jobs` at a time. After a Ctrl-C, and where one of the
// functions throws, no case is begun any more; those at work end, and what was thrown is thrown
// again.
void measure_together(const std::vector<Lane>& lanes, std::size_t jobs, const Measure& measure,
                      const Hearing& hearing);
// Cases 0 to `count`, each by itself.
void measure_together(std::size_t count, std::size_t jobs, const Measure& measure,
                      const Hearing& hearing);

// Processors that this process may run on.
std::size_t usable_cores();

}  // namespace peakbench::launch

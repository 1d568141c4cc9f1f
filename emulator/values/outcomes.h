// Plausible values of a further run: ordered numbers and booleans, chosen so that the runs between
// them take both sides of the program's comparisons on the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/facts.h"
#include "values/value.h"

namespace peakbench::values {

// Of a read of an unknown value, or of none (null).
struct Outcome {
  void* to = nullptr;  // holds what was made up, and then the outcome
  std::uint64_t bytes = 0;
  at::ScalarType dtype = at::kFloat;
  emulator::ReadKind kind = emulator::ReadKind::bytes;
};

// clang-format off
// | run        | a truth          | a floating-point number | an integer, known bound   | a size      |
// |------------|------------------|-------------------------|---------------------------|-------------|
// | 1          | true             | from 40 down            | the largest               | the largest |
// | 2          | false            | from -5 up              | 1, 2, 3, ...              | the least   |
// | 3          | each in its turn | as made up              | the largest but one, down | the same    |
// | 4          | as made up       | as made up              | 1, 2, 3, ...              | the same    |
// | 5 and more | as made up       | as made up              | as made up                | as computed |
// clang-format on
//
// The order is that in which the process reads. What is read again stays, and so do operators that
// are computed later. Several numbers of one read are sorted instead. A line that reads truths
// again and again gets each in its turn after a while, so that loops end. The run 0 is left alone.
// With no lock held: takes Python's.
void choose_outcome(const ValuePtr& value, std::size_t offset, const Outcome& outcome);

// The next integer in the order of the run, counts of rows among them: below the last one, or above
// it, as far as its own limits let it be. Then the order begins anew.
enum class Order : std::uint8_t { up, down };
std::int64_t next_in_order(Order order, std::int64_t least, std::int64_t most);

}  // namespace peakbench::values

// How PyTorch's operators round, on a card and on the CPU. docs/explanation/internals.md
// ("How a card rounds") has the source of each row.
#pragma once

#include <cstdint>
#include <string_view>

namespace peakbench::values {

// What an operator itself rounds, whatever its inputs are.
enum class Rounds : std::uint8_t {
  alike,      // nothing, or to the nearest, once, on both
  sums,       // adds in any order, in float (of double: in double)
  own_sums,   // adds in any order, maybe in the type of the numbers themselves
  a_little,   // to within some units in the last place
  shares,     // exponentials, divided by their sum, or the logarithms of that
  otherwise,  // nobody has looked: it does not where double precision gives the same
};
// How an output moves when an input does.
enum class Follows : std::uint8_t {
  added_up,  // as a sum of inputs or of products of two does
  rising,    // never falls when an input rises
  either,    // rises or falls with each input, as long as the others stay
  one_side,  // the same, of numbers on one side of zero
  equality,  // is whether inputs are equal, or not zero
  nobody_knows,
};

struct Arithmetic {
  std::string_view name;  // without a `_` at its end
  Rounds rounds;
  Follows follows;
};

const Arithmetic& arithmetic_of(std::string_view name);

}  // namespace peakbench::values

// Operators whose kernel reads the number of rows of its result back from the device: they are
// computed before the kernel runs, and its read is answered with that number.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "values/gather.h"

namespace peakbench::values {

// The number of rows for a size that depends on unknown values: by --assume, or in a further run
// (outcomes.h). nullopt: nothing is assumed.
std::optional<std::int64_t> assumed_rows(std::int64_t least, std::int64_t most);

struct Size {
  std::int64_t count = 0;
  bool substituted = false;
  Purpose purpose = Purpose::any;
  Choices choices;                   // choices left open by PyTorch that it depends on
  Choices of_results;                // and those of its results
  bool finds_first = false;          // a search that is asked for besides ends at the first place
  std::vector<c10::IValue> results;  // empty if there is only the count
  at::Tensor indices;                // of a sparse result, where they are all that is known
};

Size find_size(Call& call);
// The number for the calling thread's operator, if it asks.
const Size* size_asked_for();
// Null: none.
void tell_size(const Size* size);
// A sparse result gets the indices that were found.
void put_indices(const Size& size, const std::vector<c10::IValue>& results);
// The results of the operator get what was computed.
void put_results(const Call& call, const Size& size, const std::vector<c10::IValue>& results);

}  // namespace peakbench::values

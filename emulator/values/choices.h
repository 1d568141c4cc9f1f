// What a value hangs on that PyTorch leaves open: which of several results a card gives. A value
// that rests on such a choice is known as long as the card chooses as the CPU does; it is told of
// where the host reads it.
#pragma once

#include <string>
#include <vector>

namespace peakbench::values {

struct Choice {
  std::string operation;
  const char* what = "";  // a constant: "the order of equal keys"
  bool unsure = false;    // why some of a value's bytes are not known; the others do not hang on it

  bool operator==(const Choice&) const = default;
};

class Choices {
 public:
  bool empty() const { return choices_.empty(); }
  void add(const Choice& choice);
  void add(const Choices& others);
  // Enters them in the ledger, as conditions, where bytes are read that are `known` or not. Takes
  // Python's lock: with no lock held.
  void tell(bool known) const;

 private:
  std::vector<Choice> choices_;
};

}  // namespace peakbench::values

// Writes Python's pickle format, protocol 2, as far as memory snapshots need it. For the room's own
// use.
//
// Read by Python's pickle and by the unpickler of PyTorch's MemoryViz.js, which knows few opcodes
// and appends a batch by one call with as many arguments: hence protocol 2 and batches of 1000.
// Source of the opcodes: Python's pickletools.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/output_file.h"

namespace peakbench::trace {

class PickleWriter {
 public:
  // What is written in full once, and then by its number in the memo.
  struct Shared {
    std::int64_t memo = -1;
  };
  struct Word : Shared {
    explicit Word(const std::string& words) : text(valid_utf8(words)) {}
    std::string text;
  };

  explicit PickleWriter(OutputFile& file);

  void integer(std::int64_t value);
  void boolean(bool value);
  void text(const std::string& value);
  void text(Word& word);
  void pair(std::int64_t first, std::int64_t second);  // a tuple

  // item() before every element of a list; in a dictionary, keys and values in turn.
  void begin_list();
  void item();
  void end_list();
  void begin_dict();
  void end_dict();

  bool again(const Shared& shared);  // true where it was remembered, and is written by that
  void remember(Shared& shared);     // what was written last

  void stop();

 private:
  void write(char opcode, std::uint64_t argument, int bytes);

  OutputFile& file_;
  std::int64_t memo_ = 0;
  std::vector<std::int64_t> open_lists_;  // elements in the batch
};

}  // namespace peakbench::trace

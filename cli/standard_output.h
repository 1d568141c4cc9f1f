// What the program prints for others to read: all of it, or an error. Half a list of cases must not
// pass for a whole one.
#pragma once

#include <array>
#include <ostream>
#include <streambuf>

namespace peakbench::cli {

inline constexpr int kNobodyReads = 128 + 13;  // as of a process that SIGPIPE ended

// An ostream on a descriptor that remembers why it could not be written. What is written after a
// failure is dropped: a run goes on, its results are files.
class StandardOutput {
 public:
  explicit StandardOutput(int descriptor);
  std::ostream& stream() { return stream_; }

  // Writes what is left. The program's exit code: `code`, or that of an output that could not be
  // written, which is said on `err`. Nobody reading any more is not worth a word.
  int finish(int code, std::ostream& err);

 private:
  class Buffer : public std::streambuf {
   public:
    explicit Buffer(int descriptor);
    int error() const { return error_; }

   protected:
    int_type overflow(int_type c) override;
    int sync() override;

   private:
    int descriptor_, error_ = 0;
    std::array<char, 1 << 16> bytes_;
  };

  Buffer buffer_;
  std::ostream stream_;
};

// Opens the first three descriptors where the caller has closed them, so that no file of ours gets
// their number and what is printed: reading from these and writing to them fails, as it should.
void keep_standard_descriptors();

// A pipe without a reader and a file that has reached `ulimit -f` are errors of a write, not a
// signal that ends the program.
void ignore_signals_of_writes();

}  // namespace peakbench::cli

#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace peakbench::cli {

struct Screen {
  bool live = false;  // may be redrawn: a terminal with escape codes, not turned off by the user
  std::function<int()> width = [] { return 80; };  // asked at each drawing: windows change
};

// Of a file descriptor. No live drawing with NO_COLOR or TERM=dumb, or where it is no terminal.
Screen screen_of(int descriptor);

// Columns of a table on a descriptor: the terminal's width, or 100 if it is no terminal.
int table_width(int descriptor);
// Columns for a sentence: the terminal's; a file's sentences are not broken.
int line_width(int descriptor);

// What commands print, safe for a terminal: names from files, plugins and the environment may hold
// escape sequences, and none of them gets through.

// Characters may come in pieces.
class SafeBuffer : public std::streambuf {
 public:
  explicit SafeBuffer(std::ostream& target) : target_(target) {}
  ~SafeBuffer() override;  // writes what is left of a character that was not completed
  SafeBuffer(const SafeBuffer&) = delete;
  SafeBuffer& operator=(const SafeBuffer&) = delete;

  void add_codes(std::string_view codes) { codes_ += codes; }

 private:
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

  bool put(std::string_view bytes);

  std::ostream& target_;
  std::string codes_;    // to go before the next text
  std::string pending_;  // the beginning of a character
};

// Writes escaped_controls() of the text to `target`, which must outlive it, and flushes when
// `target` would. A failure of `target` is a failure of this stream.
class SafeStream : public std::ostream {
 public:
  explicit SafeStream(std::ostream& target);

  // Codes of our own, as they are. Written with what follows them, so that nothing flickers.
  void add_codes(std::string_view codes) { buffer_.add_codes(codes); }

 private:
  SafeBuffer buffer_;
};

// Codes for a terminal, through a SafeStream or to any other stream.
void write_codes(std::ostream& out, std::string_view codes);

// Lines on a live screen that are redrawn in one write, so that nothing flickers.
class RedrawnLines {
 public:
  explicit RedrawnLines(std::ostream& out) : out_(out) {}
  // Whole lines, none wider than the screen, in the place of those before.
  void show(const std::string& lines);
  void erase() { show(""); }

 private:
  std::ostream& out_;
  std::ptrdiff_t drawn_ = 0;
};

// Output of the program for other programs: complete, or an error. Half a list of cases must not
// look like a complete one.

inline constexpr int kNobodyReads = 128 + 13;  // the exit code of a process ended by SIGPIPE

// An ostream on a descriptor that remembers why a write failed. Later output is dropped: the run
// continues, its results are files.
class StandardOutput {
 public:
  explicit StandardOutput(int descriptor);
  std::ostream& stream() { return stream_; }

  // Flushes. Returns the exit code: `code`, or that of a failed write, which is reported on `err`.
  // A closed pipe is not reported.
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

// Opens standard input, output and error if the caller has closed them. Otherwise a file of ours
// would get their numbers, and printed text with it. Reads and writes on them fail.
void keep_standard_descriptors();

// A pipe without a reader and a file that has reached `ulimit -f` are errors of a write, not a
// signal that ends the program.
void ignore_signals_of_writes();

}  // namespace peakbench::cli

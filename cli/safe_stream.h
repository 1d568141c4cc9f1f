// What commands print, safe for a terminal: names from files, plugins and the environment may hold
// escape sequences, and none of them gets through.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace peakbench::cli {

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

// Writes to `target`, which must outlive it, what escaped_controls() makes of the text, and as soon
// as `target` would. A failure of `target` is one of this stream.
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

}  // namespace peakbench::cli

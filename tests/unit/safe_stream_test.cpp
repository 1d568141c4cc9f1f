// What reaches a terminal: no code that is not ours, and every character whole.
#include <gtest/gtest.h>

#include <sstream>

#include "cli/terminal.h"

namespace peakbench::cli {
namespace {

std::string through(const std::vector<std::string>& pieces) {
  std::ostringstream target;
  {
    SafeStream safe(target);
    for (const auto& piece : pieces) safe << piece;
  }
  return target.str();
}

TEST(SafeStream, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(through({"a\n\x1b[31mb\x9b"}), "a\n\\u001b[31mb\\x9b");
  EXPECT_EQ(through({"\x1b", "]0;", "x\x07"}), "\\u001b]0;x\\u0007");
}

TEST(SafeStream, PutsCharactersTogetherThatComeInPieces) {
  EXPECT_EQ(through({"\xE6\x97", "\xA5\xE6", "\x9C\xAC", "\xF0\x9F\x92", "\xA5"}), "日本💥");
  EXPECT_EQ(through({"\xC2",
                     "\x9B"
                     "2J"}),
            "\\u009b2J")
      << "nor can pieces hide a control";
  EXPECT_EQ(through({"\xE6\x97"}), "\\xe6\\x97") << "one that never comes";
  std::ostringstream target;
  SafeStream safe(target);
  for (const char c : std::string("é\x1b")) safe.put(c);
  EXPECT_EQ(target.str(), "é\\u001b");
}

TEST(SafeStream, OurOwnCodesPassWithWhatFollows) {
  std::ostringstream target;
  SafeStream safe(target);
  write_codes(safe, "\r\x1b[2A");
  EXPECT_EQ(target.str(), "");
  safe << "\x1b[J";
  EXPECT_EQ(target.str(), "\r\x1b[2A\\u001b[J");
  write_codes(safe, "\x1b[J");
  safe << std::flush;
  EXPECT_EQ(target.str(), "\r\x1b[2A\\u001b[J\x1b[J");
}

TEST(SafeStream, OurOwnCodesPassAStreamWithinAnother) {
  std::ostringstream target;
  {
    SafeStream outer(target);
    std::ostream& as_any = outer;
    SafeStream inner(as_any);
    outer << "above\n";
    write_codes(inner, "\r\x1b[2A\x1b[J");
    inner << "a\x1b[31m" << std::flush;
    write_codes(inner, "\x1b[J");
    inner << std::flush;
  }
  EXPECT_EQ(target.str(), "above\n\r\x1b[2A\x1b[Ja\\u001b[31m\x1b[J");
}

TEST(SafeStream, FailsWithItsTarget) {
  std::ostringstream target;
  target.setstate(std::ios_base::badbit);
  SafeStream safe(target);
  EXPECT_FALSE(safe << "text");
}

}  // namespace
}  // namespace peakbench::cli

// The ways in for texts that somebody else made, and what makes them safe to show.
#include <sys/stat.h>

#include <cmath>

#include "base/errors.h"
#include "base/fields.h"
#include "base/json.h"
#include "base/numbers.h"
#include "base/printable.h"
#include "base/regular_file.h"
#include "records/gate_policy.h"
#include "support/scratch.h"

namespace peakbench {
namespace {

using files::read_regular_file;
using nlohmann::json;
using testing::message_of;
using testing::ScratchFolder;
using testing::write_text;

std::string json_error(const std::string& text) {
  return message_of<RunFileError>([&] { parse_json(text); });
}

std::string times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST(ReadFile, IsWholeOrSaysWhy) {
  const ScratchFolder folder;
  const std::string path = folder / "file";
  const auto error = [&](std::size_t most) {
    return message_of<ConfigError>([&] { read_regular_file(path, most); });
  };
  EXPECT_EQ(error(10), path + ": cannot be read: No such file or directory");
  const std::string text = times(70'000, "a\0b");
  write_text(path, text);
  EXPECT_EQ(read_regular_file(path, text.size()), text);
  EXPECT_EQ(error(text.size() - 1),
            path + ": has more than " + std::to_string(text.size() - 1) +
                " bytes, the most that such a file may have; is it another file?");
  write_text(path, "");
  EXPECT_EQ(read_regular_file(path, 0), "");
}

// /proc says 0 bytes.
TEST(ReadFile, GoesByWhatIsThereAndNotByTheSizeSaid) {
  EXPECT_NE(read_regular_file("/proc/self/status", 1 << 20).find("Name:"), std::string::npos);
  EXPECT_THROW(read_regular_file("/proc/self/status", 10), ConfigError);
}

TEST(ReadFile, WaitsForNobody) {
  const ScratchFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder / "pipe", std::string("/dev/zero")}) {
    EXPECT_EQ(message_of<ConfigError>([&] { read_regular_file(path, 1 << 20); }),
              path + ": is a pipe or a device; expected a regular file: write the content to one");
  }
  EXPECT_EQ(message_of<ConfigError>([&] { read_regular_file(folder.path(), 1 << 20); }),
            folder.path() + ": is a folder, not a file");
}

TEST(ParseJson, SaysWhereAndWhichField) {
  EXPECT_EQ(parse_json(R"({"a": [1, 2.5, "x"]})"), json({{"a", {1, 2.5, "x"}}}));
  EXPECT_EQ(json_error(" \n"), "the file is empty");
  EXPECT_EQ(json_error("{\"a\": [1,"), "cut short: the JSON ends unfinished after 9 bytes");
  EXPECT_EQ(json_error("{\"a\": [1,\n  {\"b/c\": 1e999}]}"),
            "line 2, column 15, /a/1/b~1c: expected a number that fits 64 bits, got 1e999");
  EXPECT_EQ(json_error("[[], {}, -1e400]"),
            "line 1, column 15, /2: expected a number that fits 64 bits, got -1e400");
  const auto nan = json_error("{\"a\": {\"b\": NaN}}");
  EXPECT_TRUE(nan.starts_with("not JSON: line 1, column 13, /a/b: ")) << nan;
  EXPECT_LT(json_error("[\"" + std::string(1 << 20, 'x') + "\x01\"]").size(), 400u);
}

TEST(ParseJson, KnowsNoMoreThanAHundredLevels) {
  const auto deep = [](int levels) { return times(levels, "[") + times(levels, "]"); };
  EXPECT_EQ(parse_json(deep(kMostJsonLevels)).dump(), deep(kMostJsonLevels));
  EXPECT_EQ(json_error(deep(kMostJsonLevels + 1)),
            "more than 100 levels of lists and objects, at line 1, column 101");
  EXPECT_EQ(json_error("{\n" + times(200'000, "{\"a\":") + times(200'000, "}")),
            "more than 100 levels of lists and objects, at line 2, column 496");
  EXPECT_EQ(json_error(times(200'000, "[")),
            "more than 100 levels of lists and objects, at line 1, column 101");
  const std::string in_text = times(200, "[{\\\"[");
  EXPECT_EQ(parse_json("[\"" + in_text + "\", []]").size(), 2u) << "brackets of a text";
  EXPECT_EQ(parse_json("[" + times(1000, "[],") + "[]]").size(), 1001u) << "beside each other";
}

TEST(ParseJson, TellsOfEachKeyOnTheWay) {
  int keys = 0;
  parse_json(R"({"a": 1, "a": {"b": 2}})", [&](int, json::parse_event_t event, json&) {
    keys += event == json::parse_event_t::key;
    return true;
  });
  EXPECT_EQ(keys, 3);
}

TEST(Numbers, AreFiniteAndInTheirRange) {
  EXPECT_EQ(number_from_text("-1.5e3"), -1500);
  for (const char* text : {"", "nan", "inf", "-inf", "1e999", "-1e999", " 1", "1 ", "1x", "0x1p3"})
    EXPECT_FALSE(number_from_text(text)) << text;
  EXPECT_TRUE(number_from_text("1", {0, 1}));
  EXPECT_FALSE(number_from_text("1.0001", {0, 1}));
  const Range<double> any;
  EXPECT_FALSE(any.holds(std::nan("")));
  EXPECT_FALSE(any.holds(INFINITY));
  EXPECT_EQ(words_of(any), "a finite number");
  EXPECT_EQ(words_of(Range<std::int64_t>{1, 9}), "an integer from 1 to 9");
  EXPECT_EQ(words_of(Range<std::int64_t>{.least = 0}), "an integer of 0 or more");
  EXPECT_EQ(words_of(Range<std::int64_t>{.most = 9}), "an integer of 9 or less");
}

TEST(Numbers, OfAField) {
  const json object{{"a", 5}, {"b", -1}, {"c", "inf"}, {"d", 0.5}, {"e", 1e300}};
  const Fields fields(object, "/x");
  const Range<std::int64_t> small{0, 4};
  const auto error = [&](auto&& read) { return message_of<FieldError>(read); };
  EXPECT_EQ(fields.get("a", Range<std::int64_t>{0, 5}), 5);
  EXPECT_EQ(error([&] { fields.get("a", small); }), "/x/a: expected an integer from 0 to 4, got 5");
  EXPECT_EQ(error([&] { fields.get_or<std::int64_t>("b", 0, small); }),
            "/x/b: expected an integer from 0 to 4, got -1");
  EXPECT_EQ(fields.get_or<std::int64_t>("none", 9, small), 9);
  EXPECT_EQ(fields.maybe("none", small), std::nullopt);
  EXPECT_EQ(error([&] { fields.get<double>("c"); }),
            "/x/c: expected a finite number, got the string \"inf\"");
  EXPECT_EQ(error([&] { fields.get("e", kMeasuredRate); }),
            "/x/e: expected a finite number from 0 to 9007199254740992, got 1e+300");
  EXPECT_EQ(fields.get("d", kMeasuredRate), 0.5);
}

TEST(Numbers, OfAPolicyNeverOverflow) {
  records::GatePolicy policy;
  const auto set = [&](const char* text) { records::set_gate(policy, "allocated", text, "here"); };
  for (const char* text : {"inf%", "nan%", "1e300%", "1e999%", "1001%", "inf", "1e19"})
    EXPECT_THROW(set(text), ConfigError) << text;
  set("1000%");
  EXPECT_GT(policy.allocated.allowed(INT64_MAX), 0);
  EXPECT_EQ(policy.allocated.allowed(10), 100);
}

TEST(Printable, IsOneLineOfTextThatShowsWhatItIs) {
  EXPECT_EQ(printable("plain, é, 日本 💥"), "plain, é, 日本 💥");
  EXPECT_EQ(printable("a\nb\tc\rd"), "a b c d");
  EXPECT_EQ(printable("\x1b]0;x\x07"), "\uFFFD]0;x\uFFFD");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\uFFFD");
  EXPECT_EQ(printable("\xC2\x9B"
                      "2J"),
            "\uFFFD2J")
      << "the 8-bit form of ESC [";
  EXPECT_EQ(printable("\u202E\u2066\u200F\u061C"), times(4, "\uFFFD")) << "turned writing";
  EXPECT_EQ(printable("\u200B\u2060\uFEFF\u00AD"), times(4, "\uFFFD")) << "without width";
  EXPECT_EQ(printable("\U000E0041"), "\uFFFD") << "a tag";
  EXPECT_EQ(printable("\uFFFE\uFFFF\uFDD0\U0001FFFE"), times(4, "\uFFFD")) << "no characters";
  EXPECT_EQ(printable("\u2028"), "\uFFFD");
  EXPECT_EQ(printable("\xE2\x82 \xC0\xAF \xED\xA0\x80 \xF5"),
            "\uFFFD\uFFFD \uFFFD\uFFFD \uFFFD\uFFFD\uFFFD \uFFFD");
}

// First bytes of UTF-8 sequences, at both ends of each range.
TEST(Printable, KeepsWholeSequencesAlone) {
  for (const std::string kept :
       {" ", "~", "\xC2\xA0", "\xDF\xBF", "\xE0\xA0\x80", "\xE1\x80\x80", "\xED\x9F\xBF",
        "\xEF\xBF\xBD", "\xF0\x90\x80\x80", "\xF1\x80\x80\x80", "\xF4\x8F\xBF\xBD"})
    EXPECT_EQ(printable(kept), kept);
  const auto marks = [](int count) { return times(count, "\uFFFD"); };
  EXPECT_EQ(printable("\x1F\x7F"), marks(2));
  EXPECT_EQ(printable("\xC1\xBF"), marks(2)) << "overlong";
  EXPECT_EQ(printable("\xE0\x9F\xBF"), marks(3)) << "overlong";
  EXPECT_EQ(printable("\xED\xA0\x80"), marks(3)) << "half of a surrogate pair";
  EXPECT_EQ(printable("\xF0\x8F\xBF\xBF"), marks(4)) << "overlong";
  EXPECT_EQ(printable("\xF4\x90\x80\x80"), marks(4)) << "beyond Unicode";
  EXPECT_EQ(printable("\xF5\x80\x80\x80"), marks(4)) << "beyond Unicode";
  EXPECT_EQ(printable("\xC3(\xF1\x80\x80"), marks(1) + "(" + marks(3));
}

TEST(EscapedControls, CanBeReadAndKeepLines) {
  EXPECT_EQ(escaped_controls("a\nb é 💥"), "a\nb é 💥");
  EXPECT_EQ(escaped_controls("\x1b[31m\t\r\x7f\xC2\x9B"),
            "\\u001b[31m\\u0009\\u000d\\u007f\\u009b");
  EXPECT_EQ(escaped_controls("\xff\xC3"), "\\xff\\xc3");
  EXPECT_EQ(escaped_controls("\u202E\uFFFE"), "\\u202e\\ufffe");
}

TEST(EscapedControls, MeanTheSameInJson) {
  const json text = std::string("\x1b\x7f\u0085\u202E\uFEFF\U000E0041 é\n");
  EXPECT_EQ(json::parse(escaped_controls(text.dump())), text);
}

}  // namespace
}  // namespace peakbench

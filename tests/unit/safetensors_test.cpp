// The header of a .safetensors file: what is read, and what is refused. tests/parity loads weights.
#include <gtest/gtest.h>

#include <cstring>

#include "safetensors_header.h"

namespace peakbench {
namespace {

std::string file_of(const std::string& header, std::size_t data = 64) {
  std::uint64_t size = header.size();
  std::string file(sizeof size, '\0');
  std::memcpy(file.data(), &size, sizeof size);
  return file + header + std::string(data, '\1');
}

std::string error_of(const std::string& file) {
  try {
    read_safetensors_header(file);
  } catch (const SafetensorsError& error) {
    return error.what();
  }
  return "nothing";
}

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

std::string error_of_tensor(const std::string& dtype, const std::string& shape,
                            const std::string& offsets) {
  return error_of(file_of("{\"t\":" + tensor(dtype, shape, offsets) + "}"));
}

std::string broken(const std::string& why) { return "not a whole .safetensors file (" + why + ")"; }

TEST(Safetensors, SaysWhichTensorsThereAreAndWhere) {
  const std::string header = R"({"__metadata__":{"format":"pt"},"a":)" +
                             tensor("F32", "[2,3]", "[0,24]") +
                             ",\"b\":" + tensor("BF16", "[]", "[24,26]") +
                             ",\"c\":" + tensor("I64", "[0,1073741824]", "[26,26]") + "}";
  const auto tensors = read_safetensors_header(file_of(header));
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors.at("a").dtype, "F32");
  EXPECT_EQ(tensors.at("a").shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(tensors.at("b").begin, 8 + header.size() + 24);
  EXPECT_EQ(tensors.at("b").end, 8 + header.size() + 26);
  EXPECT_EQ(tensors.at("c").begin, tensors.at("c").end);
}

TEST(Safetensors, AHeaderThatIsNone) {
  EXPECT_EQ(error_of("1234567"), broken("shorter than its header length"));
  EXPECT_EQ(error_of(""), broken("shorter than its header length"));
  EXPECT_EQ(error_of(file_of("{}", 0).substr(0, 9)), broken("the header runs past the end"));
  std::string file = file_of("{}");
  std::memset(file.data(), 0xFF, 8);
  EXPECT_EQ(error_of(file), broken("the header runs past the end"));
  EXPECT_EQ(error_of(file_of(std::string(100'000'001, ' '))),
            broken("the header would have 100000001 bytes; the format allows 100000000"));
  for (const char* text : {"", "{", "{\"a\":1e999}", "\xff", "{}{}"})
    EXPECT_EQ(error_of(file_of(text)), broken("the header is not JSON")) << text;
  for (const char* text : {"[]", "1", "null", "\"x\""})
    EXPECT_EQ(error_of(file_of(text)), broken("the header is not a JSON object")) << text;
  for (const char c : {'[', '{'}) {
    const std::string deep = c == '[' ? std::string(200'000, '[') : "";
    std::string keys;
    for (int i = 0; i < 200'000 && c == '{'; ++i) keys += "{\"a\":";
    EXPECT_EQ(error_of(file_of("{\"a\":" + deep + keys)), broken("the header has lists in lists"));
  }
}

TEST(Safetensors, NamesThatAreThereTwice) {
  const auto one = tensor("F32", "[1]", "[0,4]"), two = tensor("F32", "[1]", "[4,8]");
  EXPECT_EQ(error_of(file_of("{\"a\":" + one + ",\"a\":" + two + "}")),
            broken("the name \"a\" is there twice"));
  EXPECT_EQ(
      error_of(file_of(R"({"a":{"dtype":"F32","shape":[1],"shape":[2],"data_offsets":[0,8]}})")),
      broken("the name \"shape\" is there twice"));
}

TEST(Safetensors, ATensorThatIsNone) {
  const auto whole = std::string("is no list of integers of 0 or more");
  for (const char* shape : {"[-1]", "[1.5]", "[1e999]", "[\"1\"]", "{}", "null", "7",
                            "[18446744073709551615]", "[9223372036854775808]", "[[1]]"}) {
    const auto error = error_of_tensor("F32", shape, "[0,4]");
    EXPECT_TRUE(error == broken("t: shape " + whole) || error == broken("the header is not JSON"))
        << shape << error;
  }
  for (const char* offsets : {"[-4,0]", "[0,18446744073709551615]", "[0,-4]", "[0.0,4.0]", "{}"})
    EXPECT_EQ(error_of_tensor("F32", "[1]", offsets), broken("t: data_offsets " + whole))
        << offsets;
  EXPECT_EQ(error_of_tensor("F32", "[1]", "[0,4,8]"), broken("t: data_offsets are not two"));
  EXPECT_EQ(error_of_tensor("F32", "[1]", "[]"), broken("t: data_offsets are not two"));
  EXPECT_EQ(error_of_tensor("F8", "[1]", "[0,1]"),
            broken("t has dtype \"F8\"; expected F64, F32, F16, BF16, I64, I32, U8, I8 or BOOL"));
  for (const char* entry : {"1", "[]", "null", "\"x\""})
    EXPECT_EQ(error_of(file_of(std::string("{\"t\":") + entry + "}")), broken("t is no object"));
  EXPECT_EQ(error_of(file_of("{\"t\":{}}")), broken("t has no dtype"));
  EXPECT_EQ(error_of(file_of(R"({"t":{"dtype":1}})")), broken("t has no dtype"));
  EXPECT_EQ(error_of(file_of(R"({"t":{"dtype":"F32"}})")), broken("t has no shape"));
  EXPECT_EQ(error_of(file_of(R"({"t":{"dtype":"F32","shape":[]}})")),
            broken("t has no data_offsets"));
}

TEST(Safetensors, BytesThatAreNotThere) {
  EXPECT_EQ(error_of_tensor("F32", "[17]", "[0,68]"), broken("t lies outside the data"));
  EXPECT_EQ(error_of_tensor("F32", "[0]", "[65,65]"), broken("t lies outside the data"));
  EXPECT_EQ(error_of_tensor("F32", "[1]", "[8,4]"), broken("t lies outside the data"));
  EXPECT_EQ(error_of_tensor("F32", "[2]", "[0,4]"),
            broken("t has 4 bytes; its shape and dtype need 8"));
  for (const char* shape : {"[4611686018427387904,4]", "[4294967296,4294967296]",
                            "[9223372036854775807,2]", "[9223372036854775807,9,0]"}) {
    EXPECT_EQ(error_of_tensor("F32", shape, "[0,0]"),
              broken("t has a shape of more bytes than 64 bits count"))
        << shape;
  }
}

TEST(Safetensors, BytesThatAreThereTwice) {
  EXPECT_EQ(error_of(file_of("{\"b\":" + tensor("F32", "[2]", "[0,8]") +
                             ",\"a\":" + tensor("F32", "[2]", "[4,12]") + "}")),
            broken("b and a share bytes"));
  EXPECT_EQ(error_of(file_of("{\"b\":" + tensor("F32", "[2]", "[0,8]") +
                             ",\"a\":" + tensor("F32", "[0]", "[4,4]") + "}")),
            "nothing");
}

TEST(Safetensors, CutShortAnywhere) {
  const std::string whole = file_of("{\"t\":" + tensor("F32", "[16]", "[0,64]") + "}");
  EXPECT_EQ(error_of(whole), "nothing");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_TRUE(error_of(whole.substr(0, size)).starts_with("not a whole")) << size;
}

}  // namespace
}  // namespace peakbench

#include "safetensors_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

namespace peakbench {
namespace {

using nlohmann::json;
using Tensors = std::map<std::string, StoredTensor>;

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

constexpr std::uint64_t kMostHeader = 100'000'000;  // the format's own limit
constexpr int kMostLevels = 8;                      // a header has three
constexpr std::size_t kMostDimensions = 64;

[[noreturn]] void fail(const std::string& why) {
  throw SafetensorsError("not a whole .safetensors file (" + why + ")");
}

std::string_view header_text(std::string_view file) {
  std::uint64_t size = 0;
  if (file.size() < sizeof size) fail("shorter than its header length");
  std::memcpy(&size, file.data(), sizeof size);
  if (size > file.size() - sizeof size) fail("the header runs past the end");
  if (size > kMostHeader) {
    fail("the header would have " + std::to_string(size) + " bytes; the format allows " +
         std::to_string(kMostHeader));
  }
  return file.substr(sizeof size, size);
}

// Refuses what other readers may understand otherwise (a name twice), and levels that would need
// much stack later.
class Checks {
 public:
  bool operator()(int depth, json::parse_event_t event, const json& value) {
    if (depth > kMostLevels) fail("the header has lists in lists");
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event == json::parse_event_t::key && !keys_.back().insert(value.get<std::string>()).second)
      fail("the name " + value.dump() + " is there twice");
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;
};

json parsed(std::string_view text) {
  Checks checks;
  try {
    return json::parse(text, [&](int depth, json::parse_event_t event, json& value) {
      return checks(depth, event, value);
    });
  } catch (const json::exception&) {
    fail("the header is not JSON");
  }
}

std::uint64_t element_size(const std::string& name, const std::string& dtype) {
  static const std::map<std::string, std::uint64_t> kSizes = {{"F64", 8},  {"F32", 4}, {"F16", 2},
                                                              {"BF16", 2}, {"I64", 8}, {"I32", 4},
                                                              {"U8", 1},   {"I8", 1},  {"BOOL", 1}};
  const auto found = kSizes.find(dtype);
  if (found == kSizes.end()) {
    fail(name + " has dtype " +
         json(dtype.substr(0, 20)).dump(-1, ' ', false, json::error_handler_t::replace) +
         "; expected F64, F32, F16, BF16, I64, I32, U8, I8 or BOOL");
  }
  return found->second;
}

const json& member(const std::string& name, const json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end()) fail(name + " has no " + key);
  return *found;
}

// A list of integers, none negative.
std::vector<std::int64_t> whole_numbers(const std::string& name, const json& entry,
                                        const char* key) {
  const json& list = member(name, entry, key);
  const auto whole = [](const json& one) {
    return one.is_number_unsigned() && one.get<std::uint64_t>() <= INT64_MAX;
  };
  if (!list.is_array() || list.size() > kMostDimensions || !std::ranges::all_of(list, whole))
    fail(name + ": " + key + " is no list of integers of 0 or more");
  return list.get<std::vector<std::int64_t>>();
}

StoredTensor read_tensor(const std::string& name, const json& entry, std::uint64_t data_begin,
                         std::uint64_t data_size) {
  if (!entry.is_object()) fail(name + " is no object");
  const json& dtype = member(name, entry, "dtype");
  if (!dtype.is_string()) fail(name + " has no dtype");
  StoredTensor tensor{dtype.get<std::string>(), whole_numbers(name, entry, "shape"), 0, 0};
  std::uint64_t bytes = element_size(name, tensor.dtype);
  // An extent of 0 excuses no other: strides are products, too.
  for (const std::int64_t extent : tensor.shape) {
    if (extent > 0 && __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes))
      fail(name + " has a shape of more bytes than 64 bits count");
  }
  if (std::ranges::count(tensor.shape, 0) > 0) bytes = 0;
  const auto offsets = whole_numbers(name, entry, "data_offsets");
  if (offsets.size() != 2) fail(name + ": data_offsets are not two");
  const auto begin = static_cast<std::uint64_t>(offsets[0]);
  const auto end = static_cast<std::uint64_t>(offsets[1]);
  if (begin > end || end > data_size) fail(name + " lies outside the data");
  if (end - begin != bytes) {
    fail(name + " has " + std::to_string(end - begin) + " bytes; its shape and dtype need " +
         std::to_string(bytes));
  }
  tensor.begin = data_begin + begin;
  tensor.end = data_begin + end;
  return tensor;
}

void refuse_overlaps(const Tensors& tensors) {
  std::vector<const Tensors::value_type*> by_place;
  for (const auto& tensor : tensors) by_place.push_back(&tensor);
  std::ranges::sort(by_place, {}, [](const auto* one) { return one->second.begin; });
  const Tensors::value_type* last = nullptr;
  for (const auto* one : by_place) {
    if (one->second.begin == one->second.end) continue;
    if (last && one->second.begin < last->second.end)
      fail(last->first + " and " + one->first + " share bytes");
    last = one;
  }
}

}  // namespace

Tensors read_safetensors_header(std::string_view file) {
  const auto text = header_text(file);
  const json header = parsed(text);
  if (!header.is_object()) fail("the header is not a JSON object");
  const std::uint64_t data_begin = sizeof(std::uint64_t) + text.size();
  Tensors tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    tensors.emplace(name, read_tensor(name, entry, data_begin, file.size() - data_begin));
  }
  refuse_overlaps(tensors);
  return tensors;
}

}  // namespace peakbench

#include "core/convolutions.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace peakbench::emulator {
namespace {

using nlohmann::json;
using Sizes = std::vector<std::int64_t>;

constexpr std::array kPasses{"forward", "backward_data", "backward_weight"};
constexpr std::array kLayouts{"channels first", "channels last"};

struct SizesMember {
  const char* key;
  Sizes Convolution::*sizes;
  std::int64_t least;
};
constexpr std::array kSizes{SizesMember{"input", &Convolution::input, 1},
                            SizesMember{"weight", &Convolution::weight, 1},
                            SizesMember{"stride", &Convolution::stride, 1},
                            SizesMember{"padding", &Convolution::padding, 0},
                            SizesMember{"dilation", &Convolution::dilation, 1}};

// One entry, whose errors say which it is.
class Members {
 public:
  Members(const json& members, std::string where) : members_(members), where_(std::move(where)) {
    if (!members.is_object()) fail("expected an object");
  }

  const json& at(const char* key) {
    known_.insert(key);
    if (!members_.contains(key)) fail(std::string(key) + ": missing");
    return members_.at(key);
  }
  bool has(const char* key) {
    known_.insert(key);
    return members_.contains(key);
  }
  std::string text(const char* key) {
    const json& value = at(key);
    if (!value.is_string()) fail(std::string(key) + ": expected a text");
    return value.get<std::string>();
  }
  std::int64_t number(const char* key, const json& value, std::int64_t least) const {
    constexpr std::int64_t kMost = std::int64_t{1} << 44;
    const auto is_whole = value.is_number_integer() &&
                          (!value.is_number_unsigned() || value.get<std::uint64_t>() <= kMost);
    if (!is_whole || value.get<std::int64_t>() < least || value.get<std::int64_t>() > kMost)
      fail(std::string(key) + ": expected a whole number of at least " + std::to_string(least) +
           ", got " + value.dump(-1, ' ', false, json::error_handler_t::replace));
    return value.get<std::int64_t>();
  }
  Sizes sizes(const char* key, std::int64_t least) {
    const json& list = at(key);
    if (!list.is_array() || list.empty()) fail(std::string(key) + ": expected a list of sizes");
    Sizes sizes;
    for (const json& size : list) sizes.push_back(number(key, size, least));
    return sizes;
  }
  void done() const {
    for (const auto& [key, value] : members_.items())
      if (!known_.contains(key)) fail("unknown member \"" + key + "\"");
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw std::invalid_argument(where_ + ": " + what);
  }

 private:
  const json& members_;
  std::string where_;
  std::set<std::string> known_;
};

int version_from(Members& entry) {
  const auto text = entry.text("cudnn");
  int major = 0, minor = 0, patch = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%d.%d.%d%c", &major, &minor, &patch, &rest) != 3 || major < 1 ||
      major > 99 || minor < 0 || minor > 99 || patch < 0 || patch > 99)
    entry.fail("cudnn: expected a release like 9.19.0");
  return major * 10000 + minor * 100 + patch;
}

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

Convolution convolution_from(Members& entry) {
  Convolution convolution;
  for (const auto& [key, sizes, least] : kSizes) convolution.*sizes = entry.sizes(key, least);
  const auto spatial = convolution.input.size() - 2;
  if (convolution.input.size() < 3 || convolution.weight.size() != convolution.input.size())
    entry.fail("input and weight: expected [N, C, H, W] and [K, C / groups, R, S]");
  for (const auto& [key, sizes, least] : kSizes)
    if (sizes != &Convolution::input && sizes != &Convolution::weight &&
        (convolution.*sizes).size() != spatial)
      entry.fail(std::string(key) + ": expected " + std::to_string(spatial) + " sizes");
  convolution.dtype = entry.text("dtype");
  const auto layout = entry.text("layout");
  if (layout != kLayouts[0] && layout != kLayouts[1])
    entry.fail("layout: expected \"channels first\" or \"channels last\"");
  convolution.channels_last = layout == kLayouts[1];
  if (entry.has("tf32")) {
    if (!entry.at("tf32").is_boolean()) entry.fail("tf32: expected true or false");
    convolution.tf32 = entry.at("tf32").get<bool>();
  }
  return convolution;
}

void add(Members& entry, std::map<Convolution, ConvolutionBytes>& to) {
  ConvolutionBytes& bytes = to[convolution_from(entry)];
  for (int pass = 0; pass < kConvolutionPasses; ++pass) {
    if (!entry.has(kPasses[pass])) continue;
    const auto size =
        static_cast<std::uint64_t>(entry.number(kPasses[pass], entry.at(kPasses[pass]), 0));
    if (bytes[pass] && *bytes[pass] != size)
      entry.fail(std::string(kPasses[pass]) + ": " + std::to_string(size) + ", and " +
                 std::to_string(*bytes[pass]) + " in an earlier entry of the same convolution");
    bytes[pass] = size;
  }
  entry.done();
}

}  // namespace

std::vector<MeasuredConvolutions> read_convolutions(const json& list) {
  if (!list.is_array()) throw std::invalid_argument(": expected a list");
  std::vector<MeasuredConvolutions> all;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto where = "[" + std::to_string(i) + "]";
    Members entry(list[i], where);
    MeasuredConvolutions measured;
    measured.cudnn_version = version_from(entry);
    for (const auto& other : all)
      if (other.cudnn_version == measured.cudnn_version)
        entry.fail("cudnn: " + version_text(measured.cudnn_version) + " is there already");
    measured.source = entry.text("source");
    const json& convolutions = entry.at("convolutions");
    if (!convolutions.is_array()) entry.fail("convolutions: expected a list");
    for (std::size_t k = 0; k < convolutions.size(); ++k) {
      Members one(convolutions[k], where + ".convolutions[" + std::to_string(k) + "]");
      add(one, measured.bytes);
    }
    entry.done();
    all.push_back(std::move(measured));
  }
  return all;
}

std::vector<MeasuredConvolutions> convolutions_in(const std::string& path) {
  std::ifstream file(path);
  const auto document = json::parse(file, nullptr, false);
  if (!document.is_object() || !document.contains(kConvolutionWorkspaces)) return {};
  try {
    return read_convolutions(document.at(kConvolutionWorkspaces));
  } catch (const std::invalid_argument&) {
    return {};
  }
}

nlohmann::ordered_json to_json(const std::vector<MeasuredConvolutions>& measured) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& of_release : measured) {
    auto convolutions = nlohmann::ordered_json::array();
    for (const auto& [convolution, bytes] : of_release.bytes) {
      nlohmann::ordered_json one;
      for (const auto& [key, sizes, least] : kSizes) one[key] = convolution.*sizes;
      one["dtype"] = convolution.dtype;
      one["layout"] = kLayouts[convolution.channels_last ? 1 : 0];
      if (convolution.tf32) one["tf32"] = true;
      for (int pass = 0; pass < kConvolutionPasses; ++pass)
        if (bytes[pass]) one[kPasses[pass]] = *bytes[pass];
      convolutions.push_back(std::move(one));
    }
    list.push_back({{"cudnn", version_text(of_release.cudnn_version)},
                    {"source", of_release.source},
                    {"convolutions", std::move(convolutions)}});
  }
  return list;
}

}  // namespace peakbench::emulator

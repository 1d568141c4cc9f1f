#include "config.h"

#include <charconv>
#include <string>

#include "peakbench/errors.h"

namespace peakbench::resnet {
namespace {

constexpr std::int64_t kMostBlocks = 64;

// "3:4:6:3"
std::array<std::int64_t, 4> blocks_from(const std::string& text) {
  std::array<std::int64_t, 4> blocks{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto [after, error] = std::from_chars(at, end, blocks[i]);
    const bool ends_well = i + 1 < blocks.size() ? after != end && *after == ':' : after == end;
    if (error != std::errc() || !ends_well || blocks[i] < 1 || blocks[i] > kMostBlocks) {
      throw OptionError("blocks=" + text + ": expected four numbers from 1 to " +
                        std::to_string(kMostBlocks) + " joined by ':', as in 3:4:6:3");
    }
    at = after + 1;
  }
  return blocks;
}

}  // namespace

ResNetConfig config_from(const Options& options) {
  return {.blocks = blocks_from(options.string("blocks")),
          .width = options.integer("width"),
          .image = options.integer("image"),
          .channels_last = options.boolean("channels_last")};
}

}  // namespace peakbench::resnet

#include "config.h"

#include <string>

#include "peakbench/errors.h"

namespace peakbench::gpt2 {

Gpt2Config config_from(const Options& options) {
  const Gpt2Config config{.layers = options.integer("layers"),
                          .width = options.integer("width"),
                          .mlp = options.integer("mlp"),
                          .heads = options.integer("heads"),
                          .positions = options.integer("positions"),
                          .vocabulary = options.integer("vocabulary"),
                          .dropout = options.number("dropout")};
  if (config.width % config.heads != 0) {
    throw OptionError("width=" + std::to_string(config.width) +
                      " is not a multiple of heads=" + std::to_string(config.heads));
  }
  return config;
}

}  // namespace peakbench::gpt2

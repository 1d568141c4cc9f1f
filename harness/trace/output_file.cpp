#include "trace/output_file.h"

#include <nlohmann/json.hpp>

namespace peakbench::trace {

void OutputFile::flush() {
  file_.write(buffer_);
  buffer_.clear();
}

void OutputFile::finish() {
  flush();
  file_.finish(false);
}

std::string valid_utf8(const std::string& text) {
  using nlohmann::json;
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace))
      .get<std::string>();
}

}  // namespace peakbench::trace

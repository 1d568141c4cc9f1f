#include "trace/output_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace peakbench::trace {

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (used_ >= kFlushBytes) flush();
    const auto fits = bytes.substr(0, buffer_.size() - used_);
    std::ranges::copy(fits, buffer_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ += fits.size();
    bytes.remove_prefix(fits.size());
  }
}

void OutputFile::flush() {
  file_.write({buffer_.data(), used_});
  used_ = 0;
}

void OutputFile::finish() {
  flush();
  file_.finish(false);
}

std::string valid_utf8(const std::string& text) {
  const bool is_ascii = std::ranges::all_of(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0x80U) == 0; });
  if (is_ascii) return text;  // as nearly all names are
  using nlohmann::json;
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace))
      .get<std::string>();
}

}  // namespace peakbench::trace

#include "trace/output_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "result/errors.h"
#include "result/host_limits.h"

namespace peakbench::trace {

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)),
      partial_(path_ + ".partial"),
      file_(std::fopen(partial_.c_str(), "wb")) {
  if (file_ == nullptr) fail();
}

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  std::remove(partial_.c_str());
}

void OutputFile::fail() const {
  throw HostError(fmt::format("{}: cannot be written: {}", path_, result::host_error_text(errno)));
}

void OutputFile::flush() {
  if (std::fwrite(buffer_.data(), 1, buffer_.size(), file_) != buffer_.size()) fail();
  buffer_.clear();
}

void OutputFile::finish() {
  flush();
  const int closed = std::fclose(file_);
  file_ = nullptr;
  if (closed != 0 || std::rename(partial_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    std::remove(partial_.c_str());
    errno = reason;
    fail();
  }
}

std::string valid_utf8(const std::string& text) {
  using nlohmann::json;
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace))
      .get<std::string>();
}

}  // namespace peakbench::trace

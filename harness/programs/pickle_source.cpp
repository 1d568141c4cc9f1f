#include "programs/pickle_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "base/errors.h"

namespace peakbench::programs {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20U;
constexpr std::size_t kLongestLine = 4096;

}  // namespace

PickleSource::PickleSource(const std::string& path) : path_(path), file_(path), buffer_(kBuffer) {
  if (file_.is_open()) return;
  if (file_.error() != 0) fail(fmt::format("cannot be read: {}", std::strerror(file_.error())));
  fail(file_.is_folder() ? "is a folder, not a file"
                         : "is a pipe or a device; expected a regular file");
}

void PickleSource::fail(const std::string& what) const {
  throw ConfigError(fmt::format("{}: {}", path_, what));
}

void PickleSource::fail_short() const {
  fail(fmt::format("ends in the middle, at byte {}: it was cut short; dump or copy it again",
                   position()));
}

bool PickleSource::refill() {
  before_ += end_;
  at_ = 0;
  try {
    end_ = file_.read(buffer_.data(), buffer_.size());
  } catch (const std::system_error& error) {
    end_ = 0;
    fail(fmt::format("cannot be read: {}", error.code().message()));
  }
  return end_ > 0;
}

std::uint8_t PickleSource::byte() {
  if (at_ == end_ && !refill()) fail_short();
  return static_cast<std::uint8_t>(buffer_[at_++]);
}

std::uint64_t PickleSource::little_endian(int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= static_cast<std::uint64_t>(byte()) << (8U * i);
  return value;
}

// Memory is taken as bytes are there, not as the file says.
std::string PickleSource::bytes(std::uint64_t count) {
  std::string text;
  while (text.size() < count) {
    if (at_ == end_ && !refill()) fail_short();
    const auto some = std::min<std::uint64_t>(count - text.size(), end_ - at_);
    text.append(buffer_.data() + at_, some);
    at_ += some;
  }
  return text;
}

std::string PickleSource::line() {
  std::string text;
  for (;;) {
    const auto c = static_cast<char>(byte());
    if (c == '\n') return text;
    if (text.size() == kLongestLine) fail(fmt::format("is damaged at byte {}", position()));
    text += c;
  }
}

}  // namespace peakbench::programs

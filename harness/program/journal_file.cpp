#include "program/journal_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "errors/errors.h"

namespace peakbench::program {
namespace {

constexpr std::uint64_t kBuffered = 16384;  // records
constexpr const char* kNeverBegun =
    "its recording could not be begun, as the disk was full or a limit forbids larger files";

}  // namespace

JournalFile::JournalFile(const std::filesystem::path& path)
    : file_(path.string(), files::RegularFile::Links::kRefuse) {
  if (!file_.is_open())
    throw ConfigError(file_.error() == 0 ? "it is no regular file" : std::strerror(file_.error()));
  if (file_.size() < tracer::kHeaderBytes) throw ConfigError(kNeverBegun);
  std::vector<char> head(tracer::kHeaderBytes);
  read(head.data(), head.size());
  std::memcpy(&header_, head.data(), sizeof header_);
  constexpr char kNothing[sizeof header_.magic] = {};
  if (std::memcmp(header_.magic, kNothing, sizeof kNothing) == 0) throw ConfigError(kNeverBegun);
  if (std::memcmp(header_.magic, tracer::kMagic, sizeof header_.magic) != 0 ||
      header_.stopped > tracer::Stopped::kTooLarge || header_.ended > 1)
    throw ConfigError("it is not what a traced process leaves");
  if (header_.records > (file_.size() - tracer::kHeaderBytes) / sizeof(tracer::Record))
    throw ConfigError("it is cut short");
  left_ = header_.records;
}

tracer::Record JournalFile::next() {
  if (left_ == 0) throw ConfigError("it is cut short");
  if (at_ == buffer_.size()) {
    buffer_.resize(std::min(left_, kBuffered));
    read(reinterpret_cast<char*>(buffer_.data()), buffer_.size() * sizeof(tracer::Record));
    at_ = 0;
  }
  --left_;
  return buffer_[at_++];
}

void JournalFile::read(char* to, std::size_t bytes) {
  try {
    if (file_.read(to, bytes) != bytes) throw ConfigError("it is cut short");
  } catch (const std::system_error& error) {
    throw ConfigError(fmt::format("it cannot be read: {}", error.code().message()));
  }
}

}  // namespace peakbench::program

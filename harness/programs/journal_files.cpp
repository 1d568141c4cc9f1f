#include "programs/journal_files.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include "base/errors.h"
#include "base/numbers.h"
#include "host/process_tree.h"

namespace peakbench::programs {
namespace {

constexpr std::uint64_t kBuffered = 16384;  // records
constexpr const char* kNeverBegun =
    "its recording could not be begun, as the disk was full or a limit forbids larger files";

}  // namespace

JournalFile::JournalFile(const std::filesystem::path& path)
    : file_(path.string(), files::RegularFile::Links::kRefuse) {
  if (!file_.is_open())
    throw ConfigError(file_.error() == 0 ? "it is no regular file" : std::strerror(file_.error()));
  if (file_.size() < recording::kHeaderBytes) throw ConfigError(kNeverBegun);
  std::vector<char> head(recording::kHeaderBytes);
  read(head.data(), head.size());
  std::memcpy(&header_, head.data(), sizeof header_);
  constexpr char kNothing[sizeof header_.magic] = {};
  if (std::memcmp(header_.magic, kNothing, sizeof kNothing) == 0) throw ConfigError(kNeverBegun);
  if (std::memcmp(header_.magic, recording::kMagic, sizeof header_.magic) != 0 ||
      header_.stopped > recording::Stopped::kTooLarge || header_.ended > 1)
    throw ConfigError("it is not what a traced process leaves");
  if (header_.records > (file_.size() - recording::kHeaderBytes) / sizeof(recording::Record))
    throw ConfigError("it is cut short");
  left_ = header_.records;
}

recording::Record JournalFile::next() {
  if (left_ == 0) throw ConfigError("it is cut short");
  if (at_ == buffer_.size()) {
    buffer_.resize(std::min(left_, kBuffered));
    read(reinterpret_cast<char*>(buffer_.data()), buffer_.size() * sizeof(recording::Record));
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

namespace {

namespace fs = std::filesystem;

constexpr auto kBetweenLooks = std::chrono::milliseconds(200);

bool has_untraced_pytorch(std::int32_t process, const std::string& tracer) {
  std::ifstream maps(fmt::format("/proc/{}/maps", process));
  bool pytorch = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(tracer)) return false;
    pytorch = pytorch || line.ends_with("/libtorch_cpu.so");
  }
  return pytorch;
}

}  // namespace

std::int32_t process_of(const fs::path& file) {
  constexpr Range<std::int64_t> kAny{std::numeric_limits<std::int32_t>::min(),
                                     std::numeric_limits<std::int32_t>::max()};
  return static_cast<std::int32_t>(integer_from_text(file.stem().string(), kAny).value_or(0));
}

std::string sentence_of(const Untraced& process) {
  const auto what = process.used_bytes > 0
                        ? fmt::format("took {} of the card",
                                      size_text(static_cast<std::uint64_t>(process.used_bytes)))
                        : std::string("used PyTorch");
  return fmt::format("process {} {} and was not traced: {}", process.pid, what, process.why);
}

UntracedWatch::UntracedWatch(fs::path tracer) : tracer_(std::move(tracer)) {
  // Signals are for the thread that waits for the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!ends_.wait_for(lock, kBetweenLooks, [this] { return ended_; })) look();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

UntracedWatch::~UntracedWatch() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ends_.notify_all();
  thread_.join();
}

void UntracedWatch::look() {
  for (const auto process : process::descendants_of(getpid()))
    if (!seen_.contains(process) && has_untraced_pytorch(process, tracer_.string()))
      seen_.insert(process);
}

std::vector<Untraced> UntracedWatch::found(const fs::path& journals) const {
  const std::lock_guard lock(mutex_);
  std::vector<Untraced> processes;
  for (const auto process : seen_)
    if (!fs::exists(journals / (std::to_string(process) + recording::kSuffix)))
      processes.push_back({process});
  return processes;
}

std::vector<Untraced> forked_untraced(const fs::path& journals) {
  std::vector<Untraced> processes;
  for (const auto& entry : fs::directory_iterator(journals)) {
    if (entry.path().extension() != recording::kForkedSuffix) continue;
    if (const auto process = process_of(entry.path()); process > 0) processes.push_back({process});
  }
  std::ranges::sort(processes, {}, &Untraced::pid);
  return processes;
}

}  // namespace peakbench::programs

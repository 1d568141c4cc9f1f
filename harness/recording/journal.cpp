#include "recording/journal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace peakbench::recording {
namespace {

constexpr std::uint64_t kWindowBytes = 4 << 20;
constexpr std::uint64_t kWindowRecords = kWindowBytes / sizeof(Record);
constexpr std::uint64_t kMostBytes = 16ULL << 30;

void* map(int file, std::uint64_t offset, std::uint64_t bytes) {
  // Room first: a page that the disk has none for would end the program.
  if (posix_fallocate(file, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0)
    return nullptr;
  void* at =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
  return at == MAP_FAILED ? nullptr : at;
}

// Processes of several PID namespaces have the same number: the later ones get "1.2.journal".
int create(const std::string& path) {
  constexpr int kMostOfOneNumber = 1000;
  int file = -1;
  for (int i = 1; file < 0 && i <= kMostOfOneNumber; ++i) {
    const auto name = path + (i == 1 ? "" : "." + std::to_string(i)) + kSuffix;
    file = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 && errno != EEXIST) break;
  }
  return file;
}

}  // namespace

bool JournalWriter::open(const std::string& folder, std::uint64_t most_bytes) {
  const std::lock_guard lock(mutex_);
  most_windows_ = std::max<std::uint64_t>(1, (most_bytes ? most_bytes : kMostBytes) / kWindowBytes);
  folder_ = folder;
  file_ = create(folder + "/" + std::to_string(getpid()));
  if (file_ < 0) return false;
  header_ = static_cast<Header*>(map(file_, 0, kHeaderBytes));
  if (header_ == nullptr) return false;
  header_->pid = getpid();
  header_->rank = -1;
  std::memcpy(header_->magic, kMagic, sizeof kMagic);
  return next_window();  // else the header says why there is nothing
}

void JournalWriter::set_rank(std::int32_t rank, RankSource source) {
  if (!is_open()) return;
  const std::lock_guard lock(mutex_);
  if (source < header_->rank_source) return;
  header_->rank = rank;
  header_->rank_source = source;
}

bool JournalWriter::next_window() {
  if (is_open()) munmap(window_.load(), kWindowBytes);
  window_ = nullptr;
  if (windows_ == most_windows_) {
    stop(Stopped::kTooLarge);
    return false;
  }
  window_ = static_cast<Record*>(map(file_, kHeaderBytes + windows_ * kWindowBytes, kWindowBytes));
  if (!is_open()) {
    stop(Stopped::kNoSpace);
    return false;
  }
  ++windows_;
  in_window_ = 0;
  return true;
}

void JournalWriter::stop(Stopped why) {
  if (header_ != nullptr) header_->stopped = why;
}

void JournalWriter::add_locked(const Record& record) {
  auto* const window = window_.load(std::memory_order_relaxed);
  if (window == nullptr) return;
  window[in_window_++] = record;
  // A reader of what a killed program left counts on what lies before.
  std::atomic_ref<std::uint64_t>(header_->records).fetch_add(1, std::memory_order_release);
  if (in_window_ == kWindowRecords) next_window();
}

void JournalWriter::add(const Record& record) {
  if (!is_open()) return;  // in a forked process, whose copy of the lock nobody may give back
  const std::lock_guard lock(mutex_);
  add_locked(record);
}

std::int32_t JournalWriter::text(std::string_view text) {
  if (!is_open()) return 0;
  text = text.substr(0, kLongestText);
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] =
      texts_.try_emplace(std::string(text), static_cast<std::int32_t>(texts_.size()));
  if (!is_new) return found->second;
  Record head{};
  head.tag = Tag::kText;
  head.text = {found->second, static_cast<std::int32_t>(text.size())};
  add_locked(head);
  for (std::size_t at = 0; at < text.size(); at += sizeof(Record)) {
    Record piece{};
    const auto part = text.substr(at, sizeof(Record));
    std::memcpy(static_cast<void*>(&piece), part.data(), part.size());
    add_locked(piece);
  }
  return found->second;
}

std::int32_t JournalWriter::frame(std::int32_t parent, std::int32_t file, std::int32_t function,
                                  std::int32_t line) {
  if (!is_open()) return 0;
  const std::lock_guard lock(mutex_);
  Record record{};
  record.tag = Tag::kFrame;
  record.frame = {frames_, parent, file, function, line};
  add_locked(record);
  return frames_++;
}

void JournalWriter::mark_forked() {
  if (!is_forked_.exchange(false)) return;
  const auto path = folder_ + "/" + std::to_string(getpid()) + kForkedSuffix;
  if (const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600); file >= 0)
    close(file);
}

void JournalWriter::end() {
  if (!is_open()) return;
  const std::lock_guard lock(mutex_);
  if (is_open()) header_->ended = 1;
}

}  // namespace peakbench::recording

#include "trace/output_file.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json.h"

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
  return json::parse(json_line(json(text))).get<std::string>();
}

namespace {

enum Opcode : char {
  kProtocol = '\x80',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = '\x8a',
  kTrue = '\x88',
  kFalse = '\x89',
  kBinUnicode = 'X',
  kTuple2 = '\x86',
  kEmptyList = ']',
  kAppends = 'e',
  kEmptyDict = '}',
  kSetItems = 'u',
  kMark = '(',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kStop = '.',
};

constexpr int kVersion = 2;
constexpr std::int64_t kBatch = 1000;

}  // namespace

PickleWriter::PickleWriter(OutputFile& file) : file_(file) { write(kProtocol, kVersion, 1); }

// The opcode and its argument of so many bytes, the lowest first.
void PickleWriter::write(char opcode, std::uint64_t argument, int bytes) {
  constexpr unsigned kByte = 8;
  file_.write_few(static_cast<unsigned char>(opcode) | argument << kByte,
                  argument >> (sizeof argument - 1) * kByte, 1 + static_cast<std::size_t>(bytes));
}

void PickleWriter::integer(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= 0 && value <= 0xFF) {
    write(kBinInt1, bits, 1);
  } else if (value >= 0 && value <= 0xFFFF) {
    write(kBinInt2, bits, 2);
  } else if (value >= std::numeric_limits<std::int32_t>::min() &&
             value <= std::numeric_limits<std::int32_t>::max()) {
    write(kBinInt, bits, 4);
  } else {
    file_.write(kLong1);
    write(sizeof(bits), bits, sizeof(bits));  // its length, and then itself
  }
}

void PickleWriter::boolean(bool value) { file_.write(value ? kTrue : kFalse); }

void PickleWriter::text(const std::string& value) {
  write(kBinUnicode, value.size(), 4);
  file_.write(value);
}

void PickleWriter::text(Word& word) {
  if (again(word)) return;
  text(word.text);
  remember(word);
}

void PickleWriter::pair(std::int64_t first, std::int64_t second) {
  integer(first);
  integer(second);
  file_.write(kTuple2);
}

void PickleWriter::begin_list() {
  file_.write(kEmptyList);
  file_.write(kMark);
  open_lists_.push_back(0);
}

void PickleWriter::item() {
  if (open_lists_.back()++ != kBatch) return;
  file_.write(kAppends);
  file_.write(kMark);
  open_lists_.back() = 1;
}

void PickleWriter::end_list() {
  file_.write(kAppends);
  open_lists_.pop_back();
}

void PickleWriter::begin_dict() {
  file_.write(kEmptyDict);
  file_.write(kMark);
}

void PickleWriter::end_dict() { file_.write(kSetItems); }

bool PickleWriter::again(const Shared& shared) {
  if (shared.memo < 0) return false;
  const bool fits = shared.memo <= 0xFF;
  write(fits ? kBinGet : kLongBinGet, static_cast<std::uint64_t>(shared.memo), fits ? 1 : 4);
  return true;
}

void PickleWriter::remember(Shared& shared) {
  shared.memo = memo_++;
  const bool fits = shared.memo <= 0xFF;
  write(fits ? kBinPut : kLongBinPut, static_cast<std::uint64_t>(shared.memo), fits ? 1 : 4);
}

void PickleWriter::stop() { file_.write(kStop); }

}  // namespace peakbench::trace

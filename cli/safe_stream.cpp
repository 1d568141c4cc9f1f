#include "cli/safe_stream.h"

#include <utility>

#include "text/printable.h"

namespace peakbench::cli {
namespace {

// Bytes at the end of the text that may be the beginning of a character.
std::size_t unfinished(std::string_view text) {
  constexpr std::size_t kLongest = 4;
  for (std::size_t back = 1; back < kLongest && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;
    const std::size_t length = byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    return back < length ? back : 0;
  }
  return 0;
}

}  // namespace

SafeStream::SafeStream(std::ostream& target) : std::ostream(nullptr), buffer_(target) {
  rdbuf(&buffer_);
  setf(target.flags() & std::ios_base::unitbuf);
}

SafeBuffer::~SafeBuffer() { put(escaped_controls(pending_)); }

SafeBuffer::int_type SafeBuffer::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof())) return sync();
  const char c = traits_type::to_char_type(character);
  return xsputn(&c, 1) == 1 ? character : traits_type::eof();
}

std::streamsize SafeBuffer::xsputn(const char* text, std::streamsize size) {
  pending_.append(text, static_cast<std::size_t>(size));
  const auto whole = pending_.size() - unfinished(pending_);
  const auto safe = escaped_controls(std::string_view(pending_).substr(0, whole));
  pending_.erase(0, whole);
  return put(safe) ? size : 0;
}

int SafeBuffer::sync() { return put("") && target_.flush() ? 0 : -1; }

bool SafeBuffer::put(std::string_view bytes) {
  // As codes: a command that calls another has a safe stream for its target.
  if (!codes_.empty()) write_codes(target_, std::exchange(codes_, {}));
  if (!bytes.empty()) target_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return static_cast<bool>(target_);
}

void write_codes(std::ostream& out, std::string_view codes) {
  if (auto* safe = dynamic_cast<SafeStream*>(&out)) {
    safe->add_codes(codes);
  } else {
    out << codes;
  }
}

}  // namespace peakbench::cli

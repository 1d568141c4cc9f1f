#include "cli/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/columns.h"
#include "base/printable.h"
#include "cli/program.h"

namespace peakbench::cli {
namespace {

constexpr int kUnknownTerminalWidth = 80;
constexpr int kFileWidth = 100;

int terminal_width(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUnknownTerminalWidth;
  return size.ws_col;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

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

Screen screen_of(int descriptor) {
  Screen screen;
  screen.live = isatty(descriptor) == 1 && variable("NO_COLOR").empty() &&
                variable("TERM") != "dumb" && !variable("TERM").empty();
  screen.width = [descriptor] { return terminal_width(descriptor); };
  return screen;
}

int table_width(int descriptor) {
  return isatty(descriptor) == 1 ? terminal_width(descriptor) : kFileWidth;
}

int line_width(int descriptor) {
  return isatty(descriptor) == 1 ? terminal_width(descriptor) : kUnbroken;
}

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

void RedrawnLines::show(const std::string& lines) {
  // The cursor stands below the lines drawn: back up, and clear to the end of the screen.
  if (drawn_ > 0) write_codes(out_, fmt::format("\r\x1b[{}A\x1b[J", drawn_));
  drawn_ = std::ranges::count(lines, '\n');
  out_ << lines << std::flush;
}

StandardOutput::Buffer::Buffer(int descriptor) : descriptor_(descriptor) {
  setp(bytes_.data(), bytes_.data() + bytes_.size());
}

int StandardOutput::Buffer::sync() {
  const char* from = pbase();
  while (error_ == 0 && from < pptr()) {
    const auto rest = static_cast<std::size_t>(pptr() - from);
    const auto written = TEMP_FAILURE_RETRY(::write(descriptor_, from, rest));
    if (written >= 0)
      from += written;
    else
      error_ = errno;
  }
  setp(bytes_.data(), bytes_.data() + bytes_.size());
  return error_ == 0 ? 0 : -1;
}

StandardOutput::Buffer::int_type StandardOutput::Buffer::overflow(int_type c) {
  if (sync() != 0) return traits_type::eof();
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  return sputc(traits_type::to_char_type(c));
}

StandardOutput::StandardOutput(int descriptor) : buffer_(descriptor), stream_(&buffer_) {}

int StandardOutput::finish(int code, std::ostream& err) {
  stream_.flush();
  const int error = buffer_.error();
  if (error == 0) return code;
  if (error == EPIPE) return code == kDone ? kNobodyReads : code;
  err << fmt::format("peakbench: cannot write to standard output: {}\n",
                     error == EBADF ? "it is closed" : std::strerror(error));
  return code == kInternalError || code == kInterrupted ? code : kUnusableInput;
}

void keep_standard_descriptors() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one. The wrong way round: its use is an error, as if closed.
    open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void ignore_signals_of_writes() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

}  // namespace peakbench::cli

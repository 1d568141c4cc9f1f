#include "cli/standard_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/program.h"

namespace peakbench::cli {

StandardOutput::Buffer::Buffer(int descriptor) : descriptor_(descriptor) {
  setp(bytes_.data(), bytes_.data() + bytes_.size());
}

int StandardOutput::Buffer::sync() {
  const char* from = pbase();
  while (error_ == 0 && from < pptr()) {
    const auto written = ::write(descriptor_, from, static_cast<std::size_t>(pptr() - from));
    if (written >= 0)
      from += written;
    else if (errno != EINTR)
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

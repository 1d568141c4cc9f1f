#include "sqlite/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace peakbench::sqlite {
namespace {

using Kind = FileLook::Kind;
// And the head of the first page behind it, which holds the schema.
using Header = std::array<unsigned char, 108>;

std::string words_for(mode_t mode) {
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

// Whether it can be read; the rest of what `status` says is noted.
bool is_regular(const struct stat& status, FileLook& look) {
  if (S_ISREG(status.st_mode)) return true;
  look.kind = S_ISDIR(status.st_mode) ? Kind::kFolder : Kind::kSpecial;
  if (look.kind == Kind::kSpecial) look.what = words_for(status.st_mode);
  return false;
}

std::string beside(const std::string& path, const char* suffix) {
  struct stat status {};
  const auto name = path + suffix;
  return lstat(name.c_str(), &status) == 0 && status.st_size > 0 ? name : "";
}

// Big-endian, as everything in the header.
std::uint64_t number(const Header& header, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = at; i < at + count; ++i) value = value << 8U | header.at(i);
  return value;
}

void read_header(const Header& header, FileLook& look) {
  const auto stored = number(header, 16, 2);
  const auto page_bytes = stored == 1 ? 65536 : stored;
  look.kind = Kind::kDatabase;
  look.whole_bytes = page_bytes * number(header, 28, 4);
  look.user_version = static_cast<std::int32_t>(number(header, 60, 4));
  look.application_id = static_cast<std::uint32_t>(number(header, 68, 4));
  constexpr unsigned char kLeafOfTable = 13;
  look.blank = header[100] == kLeafOfTable && number(header, 103, 2) == 0;
  look.write_ahead_log = header[18] == 2 || header[19] == 2;
}

void read_content(int descriptor, FileLook& look) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !is_regular(status, look)) return;
  look.file_bytes = static_cast<std::uint64_t>(status.st_size);
  Header header{};
  const auto got = pread(descriptor, header.data(), header.size(), 0);
  if (got < 0) {
    look.kind = Kind::kUnreadable;
    look.what = std::strerror(errno);
    return;
  }
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  look.kind = got == 0 ? Kind::kEmpty : Kind::kNotSqlite;
  if (std::memcmp(header.data(), kMagic.data(), kMagic.size()) == 0) read_header(header, look);
}

}  // namespace

FileLook look_at(const std::string& path) {
  FileLook look;
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return look;
    look.kind = Kind::kUnreadable;
    look.what = std::strerror(errno);
    return look;
  }
  if (!is_regular(status, look)) return look;
  // Not waiting: what was a file a moment ago may be a pipe now.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0) {
    look.kind = Kind::kUnreadable;
    look.what = std::strerror(errno);
    return look;
  }
  read_content(descriptor, look);
  ::close(descriptor);
  look.journal = beside(path, "-journal");
  look.log = beside(path, "-wal");
  return look;
}

}  // namespace peakbench::sqlite

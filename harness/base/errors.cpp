#include "base/errors.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace peakbench {
namespace {

const char* advice_for(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free some space, or choose another folder";
    case EFBIG:
      return "raise the limit on the size of files (ulimit -f)";
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a folder that you may write to";
    case ENOENT:
    case ENOTDIR:
      return "its folder must exist";
    case EISDIR:
      return "name a file";
    case ENAMETOOLONG:
      return "choose a shorter name";
    case EAGAIN:
      return "end some processes, or raise the limit on them (ulimit -u)";
    case ENOMEM:
      return "free memory, or raise the limit on it (ulimit -v)";
    case EMFILE:
    case ENFILE:
      return "close some files, or raise the limit on them (ulimit -n)";
    case ETXTBSY:
      return "wait until the program is written";
    default:
      return "";
  }
}

}  // namespace

bool is_host_error(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EIO:
    case EROFS:
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ESTALE:
      return true;
    default:
      return false;
  }
}

std::string host_error_text(int error) { return std::strerror(error) + host_advice(error); }

std::string host_advice(int error) {
  const std::string advice = advice_for(error);
  return advice.empty() ? "" : "; " + advice;
}

bool is_of_host(const std::string& loader_error) {
  // glibc, elf/dl-load.c and what strerror adds there.
  static constexpr std::array kWords{"failed to map segment",
                                     "cannot map zero-fill pages",
                                     "cannot create shared object descriptor",
                                     "Cannot allocate memory",
                                     "Too many open files",
                                     "Input/output error"};
  return std::ranges::any_of(
      kWords, [&](const char* words) { return loader_error.find(words) != std::string::npos; });
}

}  // namespace peakbench

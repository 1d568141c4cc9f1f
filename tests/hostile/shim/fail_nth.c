// A library to preload: counts the calls that a program makes to change files, and makes one of
// them fail.
//
//   PEAKBENCH_FAULT_PROGRAM  only in the program of this name (/proc/self/comm)
//   PEAKBENCH_FAULT_BELOW    only for files below this folder
//   PEAKBENCH_FAULT_AT       the n-th such call fails, from 1 on; 0: none, they are only counted
//   PEAKBENCH_FAULT_ERROR    with this errno
//   PEAKBENCH_FAULT_MODE     once; from: every write and new file from the n-th call on, as on a
//   full
//                            disk; short: the n-th, a write, takes one byte less than it was given
//   PEAKBENCH_FAULT_LOG      a file that gets a line a call: its number, its name, the path
//
// Streams of the C library write without a call that could be replaced, so fwrite, fflush and
// fclose are replaced themselves.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#undef fwrite

enum Mode { kOnce, kFrom, kShort };

static int active, fail_at, fail_error, log_fd = -1;
static enum Mode mode;
static char below[PATH_MAX];
static size_t below_size;
static atomic_int count;

__attribute__((constructor)) static void start(void) {
  const char* program = getenv("PEAKBENCH_FAULT_PROGRAM");
  const char* folder = getenv("PEAKBENCH_FAULT_BELOW");
  if (program == NULL || folder == NULL) return;
  if (strncmp(program_invocation_short_name, program, 15) != 0) return;
  const char* at = getenv("PEAKBENCH_FAULT_AT");
  const char* error = getenv("PEAKBENCH_FAULT_ERROR");
  const char* how = getenv("PEAKBENCH_FAULT_MODE");
  const char* log = getenv("PEAKBENCH_FAULT_LOG");
  fail_at = at ? atoi(at) : 0;
  fail_error = error ? atoi(error) : EIO;
  mode = how && strcmp(how, "from") == 0    ? kFrom
         : how && strcmp(how, "short") == 0 ? kShort
                                            : kOnce;
  snprintf(below, sizeof below, "%s", folder);
  below_size = strlen(below);
  if (log != NULL)
    log_fd =
        (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  active = 1;
}

static void note(int number, const char* name, const char* path) {
  if (log_fd < 0) return;
  char line[PATH_MAX + 64];
  const int size = snprintf(line, sizeof line, "%d %s %s\n", number, name, path);
  if (size > 0) syscall(SYS_write, log_fd, line, (size_t)size);
}

// Would the call fail on a full disk?
static int needs_room(const char* name) {
  return strstr(name, "write") != NULL || strstr(name, "open") != NULL ||
         strstr(name, "mkdir") != NULL || strcmp(name, "link") == 0 ||
         strcmp(name, "linkat") == 0 || strcmp(name, "symlink") == 0 ||
         strcmp(name, "fflush") == 0 || strcmp(name, "fclose") == 0;
}

// Counts the call; true where it is to fail.
static int fails(const char* name, const char* path) {
  if (strncmp(path, below, below_size) != 0) return 0;
  const int number = atomic_fetch_add(&count, 1) + 1;
  note(number, name, path);
  if (fail_at == 0 || mode == kShort) return 0;
  if (mode == kFrom ? (number < fail_at || !needs_room(name)) : number != fail_at) return 0;
  errno = fail_error;
  return 1;
}

static const char* path_of(int fd, char* buffer) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, buffer, PATH_MAX - 1);
  buffer[size > 0 ? size : 0] = 0;
  return buffer;
}

static const char* absolute(int folder, const char* path, char* buffer) {
  if (path[0] == '/') return path;
  char base[PATH_MAX];
  if (folder == AT_FDCWD) {
    if (getcwd(base, sizeof base) == NULL) base[0] = 0;
  } else {
    path_of(folder, base);
  }
  const int size = snprintf(buffer, PATH_MAX, "%s/%s", base, path);
  return size > 0 ? buffer : path;
}

static int fails_at(const char* name, int folder, const char* path) {
  char buffer[PATH_MAX];
  return active && path != NULL && fails(name, absolute(folder, path, buffer));
}

static int fails_on(const char* name, int fd) {
  char buffer[PATH_MAX];
  return active && fd > 2 && fails(name, path_of(fd, buffer));
}

static int is_written_to(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

static int is_short(size_t size) {
  return active && mode == kShort && size > 1 && atomic_load(&count) == fail_at;
}

#define NEXT(name)               \
  static __typeof__(&name) next; \
  if (next == NULL) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

// --- Descriptors ---------------------------------------------------------------------------------

ssize_t write(int fd, const void* bytes, size_t size) {
  NEXT(write);
  if (fails_on("write", fd)) return -1;
  return next(fd, bytes, is_short(size) && fd > 2 ? size - 1 : size);
}

ssize_t writev(int fd, const struct iovec* parts, int many) {
  NEXT(writev);
  return fails_on("writev", fd) ? -1 : next(fd, parts, many);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  NEXT(pwrite);
  return fails_on("pwrite", fd) ? -1 : next(fd, bytes, size, at);
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  NEXT(pwrite64);
  if (fails_on("pwrite", fd)) return -1;
  return next(fd, bytes, is_short(size) ? size - 1 : size, at);
}

int fsync(int fd) {
  NEXT(fsync);
  return fails_on("fsync", fd) ? -1 : next(fd);
}

int fdatasync(int fd) {
  NEXT(fdatasync);
  return fails_on("fdatasync", fd) ? -1 : next(fd);
}

int ftruncate(int fd, off_t size) {
  NEXT(ftruncate);
  return fails_on("ftruncate", fd) ? -1 : next(fd, size);
}

int ftruncate64(int fd, off64_t size) {
  NEXT(ftruncate64);
  return fails_on("ftruncate", fd) ? -1 : next(fd, size);
}

int fallocate(int fd, int how, off_t at, off_t size) {
  NEXT(fallocate);
  return fails_on("fallocate", fd) ? -1 : next(fd, how, at, size);
}

// It is closed all the same, as Linux does.
int close(int fd) {
  NEXT(close);
  const int failed = active && fd > 2 && is_written_to(fd) && fails_on("close", fd);
  const int error = errno;
  const int result = next(fd);
  if (failed) errno = error;
  return failed ? -1 : result;
}

ssize_t copy_file_range(int from, off64_t* at, int to, off64_t* target, size_t size,
                        unsigned flags) {
  NEXT(copy_file_range);
  return fails_on("write", to) ? -1 : next(from, at, to, target, size, flags);
}

ssize_t sendfile(int to, int from, off_t* at, size_t size);
ssize_t sendfile(int to, int from, off_t* at, size_t size) {
  NEXT(sendfile);
  return fails_on("write", to) ? -1 : next(to, from, at, size);
}

// --- Names ---------------------------------------------------------------------------------------

static int is_writing(int flags) {
  return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0;
}

#define MODE_OF(flags)                     \
  mode_t bits = 0;                         \
  if ((flags) & (O_CREAT | __O_TMPFILE)) { \
    va_list rest;                          \
    va_start(rest, flags);                 \
    bits = va_arg(rest, mode_t);           \
    va_end(rest);                          \
  }

int open(const char* path, int flags, ...) {
  NEXT(open);
  MODE_OF(flags)
  return is_writing(flags) && fails_at("open", AT_FDCWD, path) ? -1 : next(path, flags, bits);
}

int open64(const char* path, int flags, ...) {
  NEXT(open64);
  MODE_OF(flags)
  return is_writing(flags) && fails_at("open", AT_FDCWD, path) ? -1 : next(path, flags, bits);
}

int openat(int folder, const char* path, int flags, ...) {
  NEXT(openat);
  MODE_OF(flags)
  return is_writing(flags) && fails_at("open", folder, path) ? -1 : next(folder, path, flags, bits);
}

int openat64(int folder, const char* path, int flags, ...) {
  NEXT(openat64);
  MODE_OF(flags)
  return is_writing(flags) && fails_at("open", folder, path) ? -1 : next(folder, path, flags, bits);
}

int mkstemp(char* pattern) {
  NEXT(mkstemp);
  return fails_at("open", AT_FDCWD, pattern) ? -1 : next(pattern);
}

int mkstemp64(char* pattern) {
  NEXT(mkstemp64);
  return fails_at("open", AT_FDCWD, pattern) ? -1 : next(pattern);
}

int rename(const char* from, const char* to) {
  NEXT(rename);
  return fails_at("rename", AT_FDCWD, to) ? -1 : next(from, to);
}

int renameat(int in, const char* from, int folder, const char* to) {
  NEXT(renameat);
  return fails_at("rename", folder, to) ? -1 : next(in, from, folder, to);
}

int renameat2(int in, const char* from, int folder, const char* to, unsigned flags) {
  NEXT(renameat2);
  return fails_at("rename", folder, to) ? -1 : next(in, from, folder, to, flags);
}

int mkdir(const char* path, mode_t bits) {
  NEXT(mkdir);
  return fails_at("mkdir", AT_FDCWD, path) ? -1 : next(path, bits);
}

int mkdirat(int folder, const char* path, mode_t bits) {
  NEXT(mkdirat);
  return fails_at("mkdir", folder, path) ? -1 : next(folder, path, bits);
}

char* mkdtemp(char* pattern) {
  NEXT(mkdtemp);
  return fails_at("mkdir", AT_FDCWD, pattern) ? NULL : next(pattern);
}

int unlink(const char* path) {
  NEXT(unlink);
  return fails_at("unlink", AT_FDCWD, path) ? -1 : next(path);
}

int unlinkat(int folder, const char* path, int flags) {
  NEXT(unlinkat);
  return fails_at("unlink", folder, path) ? -1 : next(folder, path, flags);
}

int rmdir(const char* path) {
  NEXT(rmdir);
  return fails_at("rmdir", AT_FDCWD, path) ? -1 : next(path);
}

int remove(const char* path) {
  NEXT(remove);
  return fails_at("unlink", AT_FDCWD, path) ? -1 : next(path);
}

int link(const char* from, const char* to) {
  NEXT(link);
  return fails_at("link", AT_FDCWD, to) ? -1 : next(from, to);
}

int linkat(int in, const char* from, int folder, const char* to, int flags) {
  NEXT(linkat);
  return fails_at("linkat", folder, to) ? -1 : next(in, from, folder, to, flags);
}

int symlink(const char* text, const char* path) {
  NEXT(symlink);
  return fails_at("symlink", AT_FDCWD, path) ? -1 : next(text, path);
}

// --- Streams -------------------------------------------------------------------------------------

static int is_for_writing(const char* how) { return strpbrk(how, "wa+") != NULL; }

FILE* fopen(const char* path, const char* how) {
  NEXT(fopen);
  return is_for_writing(how) && fails_at("open", AT_FDCWD, path) ? NULL : next(path, how);
}

FILE* fopen64(const char* path, const char* how) {
  NEXT(fopen64);
  return is_for_writing(how) && fails_at("open", AT_FDCWD, path) ? NULL : next(path, how);
}

size_t fwrite(const void* bytes, size_t size, size_t many, FILE* stream) {
  NEXT(fwrite);
  return fails_on("fwrite", fileno(stream)) ? 0 : next(bytes, size, many, stream);
}

int fflush(FILE* stream) {
  NEXT(fflush);
  return stream != NULL && is_written_to(fileno(stream)) && fails_on("fflush", fileno(stream))
             ? EOF
             : next(stream);
}

int fclose(FILE* stream) {
  NEXT(fclose);
  const int fd = fileno(stream);
  const int failed = active && fd > 2 && is_written_to(fd) && fails_on("fclose", fd);
  const int error = errno;
  const int result = next(stream);
  if (failed) errno = error;
  return failed ? EOF : result;
}

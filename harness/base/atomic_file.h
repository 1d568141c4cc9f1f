#pragma once

#include <pthread.h>
#include <signal.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace peakbench::files {

// What is not to be left half done.

// While it lives, signals that end the process wait: until a file has its name, or what was begun
// is taken away. For moments.
class SignalsWait {
 public:
  SignalsWait() {
    sigset_t these;
    sigemptyset(&these);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&these, number);
    pthread_sigmask(SIG_BLOCK, &these, &before_);
  }
  ~SignalsWait() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  sigset_t before_;
};

// A file that is there whole or not at all.

// Gathers bytes in a file without a name, where the file system has such files, and gives it the
// name when it is whole: a process that ends in between, however it ends, leaves nothing. Elsewhere
// in PATH.tmp-PROCESS-NUMBER, which goes with the object; what a killed process left of these,
// remove_unfinished() takes away.
//
// A link is followed, and stays one. What is no regular file (a device, a pipe) is written to as it
// is. Every failure is a HostError with the path, the reason and what to do; what was there
// before is as it was then.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);

  // Gives the file its name. `durable`: not before its bytes are on the disk. Once, at the end.
  void finish(bool durable = true);

 private:
  void open_beside();
  void take_name();
  [[noreturn]] void fail(int error) const;

  std::string path_;       // as it was named, for messages
  std::string target_;     // the file itself
  std::string temporary_;  // its name until it is whole; empty: none
  int descriptor_ = -1;
  bool replaces_ = true;  // false: a device or a pipe, written to as it is
};

// Deletes what processes that were killed left of files of these names in a folder. What somebody
// is writing now stays, as does everything that cannot be told from a stranger's file.
void remove_unfinished(const std::string& folder, const std::vector<std::string>& names);

// The HostError of a file that cannot be written: its path, the reason, and what to do.
[[noreturn]] void cannot_write(const std::string& path, int error);

// A lock between processes, for what is to be done by one of them.

// Held by one at a time, until the object or its process ends, however that ends. Where the file
// system has no locks, everybody holds it.
class FileLock {
 public:
  // Waits for the file `path`, which is made for this user alone and goes with the lock. `on_wait`
  // is called once, where somebody else holds it; `give_up` is asked meanwhile. Throws HostError
  // where the file cannot be made.
  FileLock(std::string path, const std::function<void()>& on_wait,
           const std::function<bool()>& give_up);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool is_held() const { return descriptor_ >= 0; }  // false: given up

 private:
  enum class Got { kIt, kNothing, kAnOldFile };
  Got take();
  bool is_its_file() const;
  void close();

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace peakbench::files

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

// A file that is written atomically.

// Collects bytes in a file without a name, and gives it the name when it is complete: a process
// that ends before, in any way, leaves nothing. On file systems without such files the bytes are in
// PATH.tmp-PROCESS-NUMBER, which is deleted with the object. remove_unfinished() deletes those of
// killed processes.
//
// A link is followed and stays a link. Anything but a regular file (a device, a pipe) is written to
// directly. Every failure is a HostError with the path, the reason and what to do; an existing file
// is then unchanged.
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
  std::string temporary_;  // its name until it is complete; empty: none
  int descriptor_ = -1;
  bool replaces_ = true;  // false: a device or a pipe, written to as it is
};

// Deletes unfinished files of these names that killed processes left in a folder. Files that are
// being written stay, and so do files that may have another origin.
void remove_unfinished(const std::string& folder, const std::vector<std::string>& names);

// The HostError of a file that cannot be written: its path, the reason, and what to do.
[[noreturn]] void cannot_write(const std::string& path, int error);

// A lock between processes, for what is to be done by one of them.

// Held by one at a time, until the object or its process ends, however that ends. Where the file
// system has no locks, everybody holds it.
class FileLock {
 public:
  // Waits for the lock file `path`, which only this user can open and which is deleted with the
  // lock. `on_wait` is called once if another process holds it. `give_up` is asked while waiting.
  // Throws HostError if the file cannot be made.
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

// A lock between processes, for what is to be done by one of them.
#pragma once

#include <functional>
#include <string>

namespace peakbench::files {

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

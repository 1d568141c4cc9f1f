#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace peakbench::files {

// An open folder. Everything reached through it is inside it, whatever links it contains, and even
// if files and folders are replaced meanwhile.

class Folder {
 public:
  // A path from a user: links in it are followed. Throws ConfigError if it is missing, is no
  // folder, or cannot be entered.
  explicit Folder(const std::string& path);
  Folder(Folder&& other) noexcept;
  Folder& operator=(Folder&&) = delete;
  ~Folder();

  const std::string& path() const { return path_; }  // as it was named, for messages
  std::string path_of(const std::string& name) const;
  int descriptor() const { return descriptor_; }  // for openat() and the like; not for reading

  // A folder in this one; nullopt if nothing has that name. Throws ConfigError: a link (even a
  // dangling one), no folder, cannot be entered.
  std::optional<Folder> folder(const std::string& name) const;
  // The same; makes the folder if it is missing. HostError if that fails.
  Folder made(const std::string& name) const;

  // All but "." and "..", in no order. HostError where it cannot be read.
  std::vector<std::string> names() const;

  // Of a link, the link; a folder stays. HostError where it cannot be deleted.
  void remove_file(const std::string& name) const;
  // Where it is a folder, and nothing is in it. HostError where that cannot be deleted.
  void remove_if_empty(const std::string& name) const;

  // What was written in it and below is on the disk when it returns. HostError where the disk
  // refused some of it.
  void flush() const;

 private:
  Folder(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_ = -1;
};

// The ConfigError of what is no folder, or a link: its path, and what to do.
[[noreturn]] void refuse_link(const std::string& path);

// A folder that goes with its object, and after SIGKILL with the next one that is made next to it.

class TemporaryFolder {
 public:
  // `parent`/`prefix`XXXXXX, for this user alone. First removes the folders of that prefix whose
  // processes have ended: each holds a lock while it lives. Where the file system has no locks,
  // they stay. Throws std::system_error where the folder cannot be made.
  TemporaryFolder(const std::filesystem::path& parent, const std::string& prefix);
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }  // absolute

 private:
  bool make(const std::filesystem::path& parent, const std::string& prefix);

  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace peakbench::files

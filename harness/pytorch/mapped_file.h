// A file seen as text, without reading what is not looked at.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace peakbench::pytorch {

// For as long as the object lives. Empty where there is no such file, or no bytes in it.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return;
    struct stat facts {};
    if (fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0) {
      bytes_ = static_cast<std::uint64_t>(facts.st_size);
      at_ = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
      if (at_ == MAP_FAILED) at_ = nullptr;
    }
    close(file);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (at_) munmap(at_, bytes_);
  }

  std::string_view text() const {
    return at_ ? std::string_view(static_cast<const char*>(at_), bytes_) : std::string_view();
  }

 private:
  void* at_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace peakbench::pytorch

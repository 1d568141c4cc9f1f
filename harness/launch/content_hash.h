// What tells one file from another that has its name.
#pragma once

#include <string>

namespace peakbench::launch {

// SHA-256 of the bytes of a regular file, 64 hexadecimal digits, as `sha256sum` prints it; empty
// where it cannot be read. A file is read again only where the system says that it was written:
// its inode, size or times of change differ. Any thread.
std::string content_hash(const std::string& path);

}  // namespace peakbench::launch

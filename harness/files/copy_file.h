// A file copied from one folder that is held open to another.
#pragma once

#include <functional>
#include <string>

#include "files/folder.h"
#include "files/regular_file.h"

namespace peakbench::files {

// What is copied, and how it is called in messages.
struct Copied {
  const RegularFile& file;  // open
  std::string path;
};

// A new file `name` with its bytes, holes and permissions (but for the umask); false where
// `cancelled`, which is asked every megabyte, said so: what is there then is for the caller to take
// away, as it is where this throws. Throws HostError or ConfigError with the path of the one of the
// two that could not be read, or written; something of that name is in the way.
bool copy_file(const Copied& from, const Folder& to, const std::string& name,
               const std::function<bool()>& cancelled);

}  // namespace peakbench::files

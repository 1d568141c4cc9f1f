// What may be asked of a file that anyone may have made, in proportion to its size: a page that is
// its own child, a length that is a lie, make a small file endless. A file as Peakbench writes it
// needs a small part of this.
#pragma once

#include <cstdint>
#include <string>

struct sqlite3;

namespace peakbench::sqlite {

class Budget {
 public:
  // Of the connection `handle` to the file `path`; `handle` must not outlive it.
  Budget(sqlite3* handle, std::string path);
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  void renew();  // for a further piece of work; the file may have grown

  // Throw DatabaseError where there is more than the file has room for.
  void take_row(std::uint64_t rows_so_far) const;
  void take_bytes(std::uint64_t count);  // of texts and blobs

  bool is_spent() const { return operations_ == 0; }

 private:
  static int on_progress(void* self);

  std::string path_;
  std::uint64_t operations_ = 0;  // of SQLite's virtual machine, in thousands
  std::uint64_t rows_ = 0;        // a statement
  std::uint64_t bytes_ = 0;
};

}  // namespace peakbench::sqlite

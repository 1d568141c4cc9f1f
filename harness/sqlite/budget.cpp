#include "sqlite/budget.h"

#include <sqlite3.h>

#include <filesystem>
#include <utility>

#include "sqlite/database.h"

namespace peakbench::sqlite {
namespace {

// An event of a trace takes about 20 operations and 50 bytes; a hundred million operations take
// about a second. Thirty times what a whole reading needs, and room for small files.
constexpr int kThousand = 1000;
constexpr std::uint64_t kOperations = 100'000'000 / kThousand, kBytesForThousandOperations = 31;
constexpr std::uint64_t kRows = 10'000, kLeastBytesOfRow = 4;
constexpr std::uint64_t kBytes = 16'000'000, kReadings = 8;

}  // namespace

Budget::Budget(sqlite3* handle, std::string path) : path_(std::move(path)) {
  renew();
  sqlite3_progress_handler(handle, kThousand, on_progress, this);
}

void Budget::renew() {
  std::error_code error;
  const auto found = std::filesystem::file_size(path_, error);
  const std::uint64_t size = error ? 0 : found;
  operations_ = kOperations + size / kBytesForThousandOperations;
  rows_ = kRows + size / kLeastBytesOfRow;
  bytes_ = kBytes + size * kReadings;
}

void Budget::take_row(std::uint64_t rows_so_far) const {
  if (rows_so_far > rows_)
    throw DatabaseError("more rows than the file has room for", SQLITE_CORRUPT);
}

void Budget::take_bytes(std::uint64_t count) {
  if (count > bytes_) throw DatabaseError("more text than the file has room for", SQLITE_CORRUPT);
  bytes_ -= count;
}

int Budget::on_progress(void* self) {
  auto& left = static_cast<Budget*>(self)->operations_;
  if (left > 0) --left;
  return left == 0 ? 1 : 0;
}

}  // namespace peakbench::sqlite

#include <cstdint>

#include "core/copies.h"
#include "core/entry.h"

// cuSPARSE: handles and descriptors as numbers, and texts for its statuses. Sizes of workspaces and
// what is left to do on the device: entry_points.txt.

using namespace peakbench::emulator;

PEAKBENCH_ENTRY const char* cusparseGetErrorName(int status) {
  return status == kSuccess ? "CUSPARSE_STATUS_SUCCESS"
                            : "CUSPARSE_STATUS of the emulated cuSPARSE";
}
PEAKBENCH_ENTRY const char* cusparseGetErrorString(int status) {
  return status_text(status, "an error of the emulated cuSPARSE");
}

// Positions of a pivot that is zero: there are no values, so there is none.
PEAKBENCH_ENTRY int cusparseXbsrsv2_zeroPivot(void*, void*, int* out) { return give(out, -1); }
PEAKBENCH_ENTRY int cusparseXbsrsm2_zeroPivot(void*, void*, int* out) { return give(out, -1); }

// Matrices in rows (CSR), and how many entries one has that a product or a sum made: the last of
// its row offsets, which is read back from the device.

namespace {

constexpr int kBadParameter = 3;  // CUSPARSE_STATUS_INVALID_VALUE
constexpr int kIndex64 = 3;       // cusparseIndexType_t

struct Rows {
  std::int64_t rows = 0, columns = 0, entries = 0;
  const char* offsets = nullptr;  // on the device, rows + 1 of them
  int offset_type = 0;
};

Handles<Rows>& matrices() {
  static auto* const all = new Handles<Rows>(kBadParameter);
  return *all;
}

template <typename Offset>
int read_last(const Rows& matrix, std::int64_t* entries) {
  Offset last = 0;
  const auto* from = matrix.offsets + matrix.rows * static_cast<std::int64_t>(sizeof last);
  if (copy_bytes(&last, from, sizeof last) != MemoryResult::ok) return kBadParameter;
  return give(entries, static_cast<std::int64_t>(last));
}

}  // namespace

// Indices of sums have 32 bits. The host asks with a pointer of its own.
PEAKBENCH_ENTRY int cusparseXcsrgeam2Nnz(void*, int rows, int, void*, int, const int*, const int*,
                                         void*, int, const int*, const int*, void*,
                                         const int* offsets, int* entries, void*) {
  peakbench_emulator_work();
  if (!entries) return kNowhere;
  std::int64_t found = 0;
  const int status = read_last<std::int32_t>(
      {.rows = rows, .offsets = reinterpret_cast<const char*>(offsets)}, &found);
  *entries = static_cast<int>(found);
  return status;
}

PEAKBENCH_ENTRY int cusparseCreateCsr(void** out, std::int64_t rows, std::int64_t columns,
                                      std::int64_t entries, void* offsets, void*, void*,
                                      int offset_type, int, int, int) {
  return matrices().create(
      out, {rows, columns, entries, static_cast<const char*>(offsets), offset_type});
}

PEAKBENCH_ENTRY int cusparseDestroySpMat(void* matrix) {
  matrices().destroy(matrix);
  return kSuccess;
}

PEAKBENCH_ENTRY int cusparseSpMatGetSize(void* matrix, std::int64_t* rows, std::int64_t* columns,
                                         std::int64_t* entries) {
  Rows found;
  const int status = matrices().with(matrix, [&](const Rows& kept) { found = kept; });
  if (status != kSuccess) return status;
  give(rows, found.rows);
  give(columns, found.columns);
  if (found.entries || !found.offsets) return give(entries, found.entries);
  return found.offset_type == kIndex64 ? read_last<std::int64_t>(found, entries)
                                       : read_last<std::int32_t>(found, entries);
}

// cuSPARSELt: what a matrix of which half is zeros takes, which algorithms there are, and texts for
// statuses. Sizes of workspaces and what is left to do on the device: entry_points.txt.
#include <cstdint>
#include <cstring>

#include "core/entry.h"

using namespace peakbench::emulator;

namespace {

constexpr int kInvalidValue = 3;

// In the descriptor, which the caller has room for.
struct Structured {
  std::int64_t rows, columns;
  int type;
};

std::uint64_t bytes_of(int cuda_type) {
  constexpr int kFloat32 = 0, kFloat16 = 2, kBfloat16 = 14;
  if (cuda_type == kFloat32) return 4;
  return cuda_type == kFloat16 || cuda_type == kBfloat16 ? 2 : 1;
}

// Half of the values, and two bits for the place of each: what PyTorch took it to be as long as it
// did not ask (cuSPARSELtOps.cpp, compression_factor), 9 sixteenths, and 10 where values have 8
// bits.
std::uint64_t compressed_bytes(const Structured& matrix) {
  const auto element = bytes_of(matrix.type);
  const auto dense = static_cast<std::uint64_t>(matrix.rows * matrix.columns) * element;
  return dense * (element == 1 ? 10 : 9) / 16;
}

// cusparseLtMatmulAlgAttribute_t.
enum Attribute { kId, kIdsEnd, kSearchIterations, kSplitK, kSplitKMode, kSplitKBuffers };

// One algorithm, which splits nothing.
int of_the_algorithm(int attribute) {
  return attribute == kIdsEnd || attribute == kSearchIterations || attribute == kSplitK ? 1 : 0;
}

}  // namespace

PEAKBENCH_ENTRY const char* cusparseLtGetErrorName(int status) {
  return status == kSuccess ? "CUSPARSE_STATUS_SUCCESS"
                            : "CUSPARSE_STATUS of the emulated cuSPARSELt";
}
PEAKBENCH_ENTRY const char* cusparseLtGetErrorString(int status) {
  return status_text(status, "an error of the emulated cuSPARSELt");
}

PEAKBENCH_ENTRY int cusparseLtStructuredDescriptorInit(const void*, void* out, std::int64_t rows,
                                                       std::int64_t columns, std::int64_t,
                                                       std::uint32_t, int type, int, int) {
  if (!out || rows < 1 || columns < 1) return kInvalidValue;
  const Structured matrix{rows, columns, type};
  std::memcpy(out, &matrix, sizeof matrix);
  return kSuccess;
}

PEAKBENCH_ENTRY int cusparseLtSpMMACompressedSize2(const void*, const void* descriptor,
                                                   std::size_t* compressed, std::size_t* buffer) {
  if (!descriptor) return kInvalidValue;
  Structured matrix;
  std::memcpy(&matrix, descriptor, sizeof matrix);
  missing_workspace(Workspace::cusparse_lt);
  give(buffer, std::size_t{0});
  return give(compressed, static_cast<std::size_t>(compressed_bytes(matrix)));
}

PEAKBENCH_ENTRY int cusparseLtMatmulAlgGetAttribute(const void*, const void*, int attribute,
                                                    void* out, std::size_t bytes) {
  const int value = of_the_algorithm(attribute);
  if (attribute < kId || attribute > kSplitKBuffers || !out || bytes != sizeof value)
    return kInvalidValue;
  std::memcpy(out, &value, sizeof value);
  return kSuccess;
}

// Reductions of a few numbers on the host, in the types that NCCL has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace peakbench::emulator::nccl {

// ncclDataType_t: int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, e4m3,
// e5m2. 0 for none of these.
std::size_t element_bytes(int type);
bool is_floating(int type);
constexpr int kBytes = 1;

// ncclRedOp_t; later numbers are made by ncclRedOpCreatePreMulSum.
enum Reduction { kSum, kProduct, kMax, kMin, kAverage };

// Reduces the parts of all ranks, `bytes` each, into `to`, in the order of the ranks. False where
// there is no such reduction here: a type of 8 bits with an exponent, or an operator of the
// program's own.
bool reduce(const std::vector<const char*>& parts, std::uint64_t bytes, int type, int reduction,
            char* to);

}  // namespace peakbench::emulator::nccl

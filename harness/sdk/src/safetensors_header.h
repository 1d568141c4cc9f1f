// The header of a .safetensors file: which tensors there are, and where. No LibTorch.
// https://github.com/huggingface/safetensors
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace peakbench {

struct StoredTensor {
  std::string dtype;                 // one of F64, F32, F16, BF16, I64, I32, U8, BOOL
  std::vector<std::int64_t> shape;   // none negative; the product times the dtype's size fits
  std::uint64_t begin = 0, end = 0;  // in the file: bytes that are there, and nobody else's
};

// Says what is wrong with the file, without its path.
struct SafetensorsError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// `file`: the whole file. As the format has it: a header of at most 100 MB, names that are there
// once, no byte in two tensors, none outside the file. Throws SafetensorsError.
std::map<std::string, StoredTensor> read_safetensors_header(std::string_view file);

}  // namespace peakbench

// Loads weights from a local .safetensors file. The file has three sections: an 8-byte
// little-endian header length, a JSON header (name -> dtype, shape, data_offsets), and the data.
// https://github.com/huggingface/safetensors
#pragma once

#include <torch/nn/module.h>

#include <string>

namespace peakbench {

// Copies every tensor of the file into the parameter or buffer of the same name, and converts its
// dtype. The file must contain every parameter of the module; it may lack buffers.
//
// The file is mapped into memory, so loading takes no memory of the file's size. A linear layer
// whose weight is not made yet (WeightsOnDemand) copies it when the weight is made.
//
// Throws OptionError, which names the file, in two situations:
// - The file does not match the module. The message lists all missing tensors, extra tensors and
//   tensors of another shape at once.
// - The file is corrupted or cannot be read. The message gives the reason.
void load_safetensors(torch::nn::Module& module, const std::string& path);

}  // namespace peakbench

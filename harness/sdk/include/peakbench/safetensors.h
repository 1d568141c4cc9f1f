// Weights from a local .safetensors file. Format: an 8-byte little-endian header length, a JSON
// header (name -> dtype, shape, data_offsets), then the data.
// https://github.com/huggingface/safetensors
#pragma once

#include <torch/nn/module.h>

#include <string>

namespace peakbench {

// Copies every tensor of the file into the parameter or buffer of the same name, converting dtype.
// Parameters must all be there, buffers may be missing.
// Throws OptionError naming the file and: what is missing, extra, or of another shape (all at
// once), or what is broken in the file. Reads through a mapping of the file; takes no memory of its
// size.
void load_safetensors(torch::nn::Module& module, const std::string& path);

}  // namespace peakbench

// A .safetensors file's header, which says where the tensors are; the bytes themselves may be any.
#include "base/errors.h"
#include "readers/readers.h"
#include "safetensors_header.h"

namespace peakbench::hostile {

void read_safetensors_file(const std::string& path) {
  try {
    read_safetensors_header(text_of(path));
  } catch (const SafetensorsError& error) {
    throw ConfigError(error.what());  // as the worker does
  }
}

}  // namespace peakbench::hostile

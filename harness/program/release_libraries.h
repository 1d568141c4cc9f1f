// `peakbench __libraries TORCH OUT`: what ci/wheel bundles for a release of PyTorch.
#pragma once

#include <filesystem>

namespace peakbench::program {

inline constexpr const char* kReleaseLibraries = "__libraries";

// Compiles the tracer and the values library for the PyTorch in the folder `torch`, as `trace` and
// `emulate` do, and copies them to a folder of `out`, named by pytorch::library_folder(), which is
// returned. Throws ConfigError.
std::filesystem::path make_release_libraries(const std::filesystem::path& torch,
                                             const std::filesystem::path& out);

}  // namespace peakbench::program

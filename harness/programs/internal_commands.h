#pragma once

#include <filesystem>
#include <string>

namespace peakbench::programs {

// The worker of a program's case: runs it traced, in its own process, with its own folder,
// variables and signals.

// Reads the job (records/job.h), runs its program, and writes the result, with the traces next to
// `trace_path`. Exits with 0 if it wrote a result. Standard output and error are the program's own.
int run_case_worker(const std::string& job_path);

// `peakbench __libraries TORCH OUT`: what ci/wheel bundles for a release of PyTorch.

inline constexpr const char* kReleaseLibraries = "__libraries";

// Compiles the tracer and the values library for the PyTorch in the folder `torch`, as `trace` and
// `emulate` do. Copies them to a folder of `out`, named by pytorch::library_folder(), and returns
// that folder. Throws ConfigError.
std::filesystem::path make_release_libraries(const std::filesystem::path& torch,
                                             const std::filesystem::path& out);

}  // namespace peakbench::programs

// The LibTorch that was loaded against the one that the launcher found and puts into the record.
#pragma once

#include <string>

namespace peakbench::worker {

// Why what was loaded is another, empty where it is not. `expected`: what version.py said of the
// folder, as manifest::libtorch_text writes it. `build`: at::show_config() of what was loaded; what
// it does not say is not compared.
std::string why_another_libtorch(const std::string& expected, const std::string& build);

// Throws ConfigError where the launcher said which LibTorch it is ($PEAKBENCH_WORKER_LIBTORCH) and
// it is another, as of an installation of which one half was replaced. Once a device is there:
// asking LibTorch opens it.
void check_loaded_libtorch();

}  // namespace peakbench::worker

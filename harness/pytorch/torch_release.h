// What an installed PyTorch says of itself besides its version, read from its files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace peakbench::pytorch {

// The compute capabilities that it has code for, 90 for sm_90: what torch.cuda.get_arch_list()
// says. Empty where that is not found.
std::vector<int> architectures_of(const std::filesystem::path& torch);

// 12040 of "12.4"; 0 of no version.
int cuda_number(const std::string& version);

}  // namespace peakbench::pytorch

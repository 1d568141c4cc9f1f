// Versions of the vendor's libraries that an installed PyTorch is released with. It chooses between
// operators by them.
#pragma once

#include <string>

namespace peakbench::emulator {

// As the libraries count them; 0 where the package does not say.
struct VendorVersions {
  int cudnn = 0;  // 90100
  int nccl = 0;   // 22105
};

// From the metadata of the installed package, which is next to the folder `torch`.
VendorVersions vendor_versions_beside(const std::string& torch);

}  // namespace peakbench::emulator

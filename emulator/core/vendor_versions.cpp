#include "core/vendor_versions.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

namespace peakbench::emulator {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestLine = 1000;

// "Requires-Dist: nvidia-cudnn-cu12 (==9.1.0.70) ; ..."
void read_line(const std::string& line, VendorVersions& found) {
  static const std::regex pin(
      R"(Requires-Dist: nvidia-(cudnn|nccl)-cu\d+ *\(?==(\d{1,3})\.(\d{1,2})\.(\d{1,2})[^\d].*)");
  std::smatch parts;
  if (line.size() > kLongestLine || !std::regex_match(line, parts, pin)) return;
  const auto part = [&](int i) { return std::atoi(parts[i].str().c_str()); };
  (parts[1] == "cudnn" ? found.cudnn : found.nccl) = part(2) * 10000 + part(3) * 100 + part(4);
}

// The header of the metadata; a description follows an empty line.
VendorVersions read_metadata(const fs::path& path) {
  VendorVersions found;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return found;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && !line.empty() && line != "\r";)
    read_line(line, found);
  return found;
}

}  // namespace

VendorVersions vendor_versions_beside(const std::string& torch) {
  std::error_code error;
  for (auto entry = fs::directory_iterator(fs::path(torch).parent_path(), error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const auto name = entry->path().filename().string();
    if (name.starts_with("torch-") && name.ends_with(".dist-info"))
      return read_metadata(entry->path() / "METADATA");
  }
  return {};
}

}  // namespace peakbench::emulator

#include "process/python_module.h"

namespace peakbench::process {

std::vector<std::string> python_module(const std::string& python, const std::string& module) {
  // `sys` is built in. Everything else is found on sys.path.
  constexpr const char* kRunModule =
      "import sys\n"
      "if not getattr(sys.flags, 'safe_path', False): del sys.path[0]\n"
      "import runpy\n"
      "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)\n";
  return {python, "-c", kRunModule, module};
}

}  // namespace peakbench::process

// A module of ours, started in the user's Python.
#pragma once

#include <string>
#include <vector>

namespace peakbench::process {

// The words of a command that runs the module as `python -m` does; its arguments follow. Nothing is
// imported from the working folder, which `python -m` puts before Python's own modules: a package
// `importlib` there would run. (Python's own option for that, -P, came with 3.11.)
std::vector<std::string> python_module(const std::string& python, const std::string& module);

}  // namespace peakbench::process

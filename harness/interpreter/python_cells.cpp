#include "interpreter/python_cells.h"

#include "interpreter/python_api.h"

namespace peakbench::interpreter {
namespace {

// A module that was imported; borrowed.
void* module_named(const char* name) {
  const Python& p = python();
  void* const modules = p.of_system ? p.of_system("modules") : nullptr;
  return modules && is_a(modules, p.dict_type) ? p.dict_item(modules, name) : nullptr;
}

// Borrowed.
void* in_dict(void* dict, void* key) {
  const Python& p = python();
  return dict && p.dict_at && is_a(dict, p.dict_type) ? p.dict_at(dict, key) : nullptr;
}

}  // namespace

std::string cell_of(void* file) {
  void* const module = module_named("IPython.core.interactiveshell");
  if (!module) return "";
  const auto shells = attribute(module, "InteractiveShell");
  if (!shells) return "";
  const auto shell = attribute(shells.get(), "_instance");
  if (!shell) return "";
  const auto compiler = attribute(shell.get(), "compile");
  if (!compiler) return "";
  const auto numbers = attribute(compiler.get(), "_filename_map");
  void* const number = in_dict(numbers.get(), file);
  return number ? "<ipython-input-" + std::to_string(python().number(number)) + ">" : "";
}

}  // namespace peakbench::interpreter

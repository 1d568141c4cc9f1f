#include "cli/axis_options.h"

#include "cli/quantities.h"

namespace peakbench::cli {
namespace {

// "-b,--batch": "--batch".
std::string long_name(const result::AxisRow& row) {
  const std::string option = row.asked->option;
  return option.substr(option.find("--"));
}

std::vector<std::string> split(const result::AxisRow& row, const std::vector<std::string>& typed) {
  const auto option = long_name(row);
  if (row.asked->is_list) return typed;
  if (!row.is_integer) return split_values(typed, row.asked->has_options, option);
  std::vector<std::string> texts;
  for (const auto number : positive_numbers(typed, option, row.asked->most))
    texts.push_back(std::to_string(number));
  return texts;
}

// What is typed stands nowhere in the suite: messages must not point there.
void forget_places(plan::Request& request, const std::string& section) {
  std::erase_if(request.where,
                [&](const auto& place) { return place.first.rfind(section + "/", 0) == 0; });
}

}  // namespace

CLI::Option* add_repeated(CLI::App& command, const std::string& name,
                          std::vector<std::string>& values, const std::string& words,
                          const std::string& type) {
  return command.add_option(name, values, words)->allow_extra_args(false)->type_name(type);
}

CLI::Option* add_axis_option(CLI::App& command, const result::AxisRow& row, TypedLists& typed) {
  const auto& asked = *row.asked;
  return add_repeated(command, asked.option, typed[row.axis], asked.help, asked.type);
}

void take_typed(const TypedLists& typed, plan::Request& request) {
  for (const auto* row : result::asked_axes()) {
    const auto found = typed.find(row->axis);
    if (found == typed.end() || found->second.empty()) continue;
    request.is_narrowed = true;
    request.lists[row->axis] = split(*row, found->second);
    forget_places(request, row->asked->list);
    if (row->axis == result::Axis::kDevice)
      for (auto& program : request.programs) program.devices.clear();
  }
}

}  // namespace peakbench::cli

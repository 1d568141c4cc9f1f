#include "cli/output_format.h"

#include "base/json.h"
#include "cli/option_values.h"

namespace peakbench::cli {

std::string OutputFormat::of(const nlohmann::ordered_json& all) const {
  return name == "csv" ? csv_text(all) : json_text(all);
}

void add_output_format(CLI::App& command, OutputFormat& format) {
  auto* named =
      command.add_option("--format", format.name, "Output format: text (default), json or csv")
          ->check(one_of({"text", "json", "csv"}))
          ->type_name("NAME");
  command
      .add_flag_callback(
          "--json", [&format] { format.name = "json"; }, "Same as --format json")
      ->excludes(named);
}

}  // namespace peakbench::cli

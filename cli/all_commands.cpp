#include "cli/commands.h"

namespace peakbench::cli {

Commands add_commands(CLI::App& app, World& world, const std::vector<std::string>& typed) {
  return {{"quickstart", add_quickstart(app, world)},
          {"run", add_run(app, world, typed)},
          {"fit", add_fit(app, world, typed)},
          {"advise", add_advise(app, world)},
          {"list", add_list(app, world)},
          {"describe", add_describe(app, world)},
          {"report", add_report(app, world)},
          {"debug", add_debug(app, world, typed)},
          {"doctor", add_doctor(app, world)},
          {"workers", add_workers(app, world)},
          {"emulate", add_emulate(app, world)},
          {"trace", add_trace(app, world, typed)},
          {"export", add_export(app, world)},
          {"import", add_import(app, world, typed)},
          {"compare", add_compare(app, world)},
          {"gate", add_gate(app, world)},
          {"ab", add_ab(app, world, typed)},
          {"releases", add_releases(app, world, typed)},
          {"history", add_history(app, world)},
          {"publish", add_publish(app, world)},
          {"work", add_work(app, world)},
          {"merge", add_merge(app, world, typed)},
          {"new", add_new(app, world)},
          {"check", add_check(app, world)},
          {"open", add_open(app, world)},
          {"completion", add_completion(app, world)},
          {"man", add_man(app, world)}};
}

}  // namespace peakbench::cli

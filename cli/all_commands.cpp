#include "cli/commands.h"

namespace peakbench::cli {

Commands add_commands(CLI::App& app, World& world) {
  Commands all;
  // In the order and under the headings of `--help`.
  const auto add = [&](const char* heading, const Commands& commands) {
    for (const auto& one : commands) {
      app.get_subcommand(one.first)->group(heading);
      all.push_back(one);
    }
  };
  add("Your program", {{"emulate", add_emulate(app, world)},
                       {"trace", add_trace(app, world)},
                       {"fit", add_fit(app, world)},
                       {"releases", add_releases(app, world)},
                       {"import", add_import(app, world)},
                       {"export", add_export(app, world)},
                       {"mcp", add_mcp(app, world)}});
  add("Models and strategies", {{"quickstart", add_quickstart(app, world)},
                                {"run", add_run(app, world)},
                                {"advise", add_advise(app, world)},
                                {"list", add_list(app, world)},
                                {"describe", add_describe(app, world)},
                                {"report", add_report(app, world)},
                                {"open", add_open(app, world)},
                                {"debug", add_debug(app, world)}});
  add("Compare, and continuous integration", {{"compare", add_compare(app, world)},
                                              {"gate", add_gate(app, world)},
                                              {"ab", add_ab(app, world)},
                                              {"history", add_history(app, world)},
                                              {"publish", add_publish(app, world)},
                                              {"merge", add_merge(app, world)},
                                              {"work", add_work(app, world)}});
  add("Plugins", {{"new", add_new(app, world)}, {"check", add_check(app, world)}});
  add("Setup", {{"doctor", add_doctor(app, world)},
                {"workers", add_workers(app, world)},
                {"completion", add_completion(app, world)},
                {"man", add_man(app, world)}});
  return all;
}

}  // namespace peakbench::cli

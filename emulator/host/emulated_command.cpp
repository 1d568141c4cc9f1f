#include "host/emulated_command.h"

#include <fmt/format.h>

#include <utility>

#include "errors/errors.h"
#include "host/environment.h"
#include "host/for_program.h"
#include "process/find_program.h"
#include "pytorch/program_file.h"

namespace peakbench::emulator {
namespace {

void check_program(const std::vector<std::string>& command) {
  if (command.empty())
    throw ConfigError(
        "no program to run; expected: peakbench emulate --card h100-80gb -- python3 train.py");
  const auto program = process::find_program(command[0]);
  if (!program) throw ConfigError(fmt::format("{}: no such program", command[0]));
  if (const auto reason = pytorch::why_not_preloaded(*program)) throw ConfigError(*reason);
}

void append(process::Environment& environment, process::Environment more) {
  for (auto& variable : more) environment.push_back(std::move(variable));
}

}  // namespace

std::optional<PreparedCommand> prepare(const EmulatedCommand& command,
                                       const std::filesystem::path& folder, bool limited,
                                       const std::function<bool()>& cancelled) {
  check_program(command.command);
  const Installation found = find_installation();
  const auto torch = pytorch::torch_of_command(command.command, cancelled);
  if (cancelled()) return std::nullopt;
  if (torch)
    if (const auto reason = why_torch_cannot_work(*torch, found)) throw ConfigError(*reason);
  const Installation installation = for_program(found, torch);
  Card card = parse_card(command.card, installation);
  if (!limited) take_limit_away(card);
  PreparedCommand prepared{torch, installation, card,
                           emulation_environment(card, installation, folder)};
  append(prepared.environment, values_environment(command.values, found, torch, cancelled));
  if (command.more_environment) try {
      append(prepared.environment, command.more_environment({torch, folder, cancelled}));
    } catch (const ConfigError&) {
      if (!cancelled()) throw;
    }
  if (cancelled()) return std::nullopt;
  return prepared;
}

}  // namespace peakbench::emulator

#include "search/fit_json.h"

#include "result/axes.h"
#include "result/case_json.h"
#include "result/device.h"
#include "result/selection_text.h"

namespace peakbench::search {
namespace {

using nlohmann::ordered_json;
using result::optional_to_json;

ordered_json to_json(const Trial& trial) {
  return {{"value", trial.value},
          {"card_memory_bytes", optional_to_json(trial.memory_bytes)},
          {"status", result::to_string(trial.status)},
          {"peak_allocated_bytes", optional_to_json(trial.allocated_bytes)},
          {"peak_reserved_bytes", optional_to_json(trial.reserved_bytes)},
          {"wall_ns", trial.wall_ns}};
}

ordered_json memory_json(const Cell& cell, const CellAnswer& answer) {
  if (!answer.found || !answer.found->memory) return nullptr;
  const auto& memory = *answer.found->memory;
  const auto room = room_of(cell, answer);
  return {{"peak_allocated_bytes", memory.peak_allocated_bytes},
          {"least_memory_bytes", optional_to_json(answer.least.bytes)},
          {"least_memory_note", answer.least.note},
          {"peak_reserved_bytes", optional_to_json(memory.peak_reserved_bytes)},
          {"peak_phase", memory.peak_phase},
          {"left_bytes", optional_to_json(room.left_bytes)}};
}

ordered_json failure_json(const CellAnswer& answer) {
  if (!answer.failed || !answer.failed_value) return nullptr;
  return {{"value", *answer.failed_value},
          {"reason", answer.failed->reason},
          {"out_of_memory", optional_to_json(answer.failed->out_of_memory)}};
}

}  // namespace

Room room_of(const Cell& cell, const CellAnswer& answer) {
  Room room;
  if (!answer.found || !answer.found->memory) return room;
  const auto& memory = *answer.found->memory;
  room.takes_bytes = answer.least.bytes ? answer.least.bytes : memory.peak_reserved_bytes;
  if (!room.takes_bytes) room.takes_bytes = memory.peak_allocated_bytes;
  room.left_bytes = cell.usable_bytes() - *room.takes_bytes;
  return room;
}

ordered_json to_json(const Cell& cell, const CellAnswer& answer) {
  const auto value = answer.value.value_or(cell.limits.first);
  const auto planned = cell.not_run.empty() ? cell.with_value(value) : cell.planned;
  ordered_json json{
      {"id", planned.spec.id},
      {"state", to_string(answer.state)},
      {"reason", answer.reason},
      {"largest", optional_to_json(answer.is_smallest ? std::nullopt : answer.value)},
      {"smallest", optional_to_json(answer.is_smallest ? answer.value : std::nullopt)},
      {"at_limit", answer.at_limit},
      {"limit_reason", answer.limit_reason}};
  result::append_json(json, planned.spec);
  json["promise"] = planned.promise.promise;
  json["card_memory_bytes"] = cell.card_bytes;
  json["context_bytes"] = cell.context.bytes;
  json["context_source"] = emulator::word_of(cell.context.source);
  json["memory"] = memory_json(cell, answer);
  json["work"] = answer.found ? optional_to_json(answer.found->work) : ordered_json(nullptr);
  json["verdict"] = answer.found && answer.found->emulation && answer.found->emulation->verdict
                        ? result::to_json(*answer.found->emulation)["verdict"]
                        : ordered_json(nullptr);
  json["fails"] = failure_json(answer);
  json["against"] = answer.against;
  auto& trials = json["trials"] = ordered_json::array();
  for (const auto& trial : answer.trials) trials.push_back(to_json(trial));
  return json;
}

}  // namespace peakbench::search

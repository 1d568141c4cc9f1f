#include "core/ledger_json.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace peakbench::emulator {
namespace {

using nlohmann::json;

json known(bool counts, std::uint64_t bytes) { return counts ? json(bytes) : json(); }

json device_json(const Ledger& ledger, unsigned index) {
  const LedgerDevice& device = ledger.devices[index];
  const bool counts = are_counts_known(ledger, device);
  json all = {{"index", index},
              {"rank", device.rank < 0 ? json() : json(device.rank)},
              {"peak_allocated_bytes", known(counts, device.peak_allocated_bytes)},
              {"peak_reserved_bytes", known(counts, device.peak_reserved_bytes)},
              {"out_of_memory_calls", known(counts, device.out_of_memory_calls)},
              {"last_needed_bytes", known(counts, device.last_needed_bytes)},
              {"largest_needed_bytes", known(counts, device.largest_needed_bytes)}};
#define COPY(field) all[#field] = device.field;
  NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(
      COPY, card, total_bytes, peak_used_bytes, peak_malloc_bytes, peak_virtual_bytes,
      peak_pool_bytes, used_bytes, malloc_bytes, virtual_bytes, allocations, frees,
      refused_allocations, last_refused_bytes, largest_refused_bytes, used_at_refusal_bytes))
#undef COPY
  return all;
}

json read_back_json(const LedgerReadBack& row) {
  return {{"function", row.function},
          {"library", row.library},
          {"operator", row.operation},
          {"kind", word_of(row.kind)},
          {"effect", word_of(unknown_calls(row) ? effect_of(row.kind) : Effect::none)},
          {"place", row.place},
          {"calls", row.calls},
          {"bytes", row.bytes},
          {"zero_calls", row.zero_calls},
          {"uncertain_calls", row.uncertain_calls},
          {"substitute_calls", row.substitute_calls}};
}

json read_backs_json(const Ledger& ledger) {
  json rows = json::array();
  for_each_read(ledger, [&](const LedgerReadBack& row) { rows.push_back(read_back_json(row)); });
  return rows;
}

json places_json(const LedgerPlaces& places) {
  json rows = json::array();
  for_each_row(places, [&](const LedgerPlace& row) {
    rows.push_back({{"function", row.function},
                    {"place", row.place},
                    {"calls", row.calls},
                    {"largest_bytes", row.largest_bytes},
                    {"kernel_launches", row.kernel_launches}});
  });
  return rows;
}

const char* computing_text(Computing computing) {
  constexpr const char* kTexts[] = {"no_pytorch", "not_asked", "on", "off", "unavailable"};
  const auto at = static_cast<std::size_t>(computing);
  return kTexts[at < std::size(kTexts) ? at : 0];
}

json workspaces_json(const Ledger& ledger) {
  json rows = json::array();
  for_each_row(ledger.workspaces, [&](const LedgerWorkspace& row) {
    rows.push_back({{"name", text_of(row)},
                    {"operator", row.operation},
                    {"device", row.device},
                    {"calls", row.calls},
                    {"uncounted_calls", row.uncounted_calls},
                    {"largest_allocated_bytes", row.largest_allocated_bytes}});
  });
  return rows;
}

json facts_json(const Ledger& ledger, FactList list) {
  json rows = json::array();
  for_each_fact(ledger, [&](Fact kind, const LedgerFact& row) {
    if (list_of(kind) == list)
      rows.push_back({{"kind", word_of(kind)}, {"name", text_of(kind, row)}, {"calls", row.calls}});
  });
  return rows;
}

// Workspaces that count as none are among it: of each name, all devices together.
json unmodelled_json(const Ledger& ledger) {
  std::map<std::string, std::uint64_t> workspaces;
  for_each_row(ledger.workspaces,
               [&](const LedgerWorkspace& row) { workspaces[list_text_of(row)] += row.calls; });
  json rows = facts_json(ledger, FactList::unmodelled);
  for (const auto& [name, calls] : workspaces)
    rows.push_back({{"kind", "workspace"}, {"name", name}, {"calls", calls}});
  return rows;
}

json nccl_calls_json(const Ledger& ledger) {
  json rows = json::array();
  for_each_nccl_call(ledger, [&](NcclCall call, const LedgerNcclCalls& row) {
    rows.push_back({{"call", word_of(call)},
                    {"calls", row.calls},
                    {"bytes", known(row.unsized_calls == 0, row.bytes)}});
  });
  return rows;
}

}  // namespace

bool are_counts_known(const Ledger& ledger, const LedgerDevice& device) {
  return ledger.counts_known && (ledger.finished || device.peak_allocated_bytes);
}

json to_json(const Ledger& ledger) {
  json devices = json::array();
  for (unsigned i = 0; i < std::min<unsigned>(ledger.device_count, kLedgerDevices); ++i) {
    devices.push_back(device_json(ledger, i));
  }
  json all = {{"finished", ledger.finished != 0},
              {"devices", std::move(devices)},
              {"out_of_memory", places_json(ledger.out_of_memory)},
              {"free_memory_reads", places_json(ledger.free_memory_reads)},
              {"done_reads", places_json(ledger.done_reads)},
              {"elapsed_reads", places_json(ledger.elapsed_reads)},
              {"profiles", places_json(ledger.profiles)},
              {"read_backs", read_backs_json(ledger)},
              {"computing", computing_text(ledger.computing)},
              {"refused", facts_json(ledger, FactList::refused)},
              {"faults", facts_json(ledger, FactList::faults)},
              {"unmodelled", unmodelled_json(ledger)},
              {"nccl_calls", nccl_calls_json(ledger)},
              {"workspaces", workspaces_json(ledger)}};
#define COPY(field) all[#field] = ledger.field;
  NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(
      COPY, pid, parent_pid, command, card, shared_page_allocations, peak_pinned_bytes,
      peak_managed_bytes, host_refusals, last_host_refused_bytes, kernel_launches, graph_launches,
      unbounded_integers, copies_to_device, copies_to_device_bytes, copies_in_device,
      copies_in_device_bytes, copies_to_host, copies_to_host_bytes, blocks_in_question,
      pinned_in_question, computing_note))
#undef COPY
  return all;
}

}  // namespace peakbench::emulator

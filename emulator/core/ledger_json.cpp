#include "core/ledger_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace peakbench::emulator {
namespace {

using nlohmann::json;

json known(bool counts, std::uint64_t bytes) { return counts ? json(bytes) : json(); }

json device_json(const Ledger& ledger, unsigned index) {
  const LedgerDevice& device = ledger.devices[index];
  const bool counts = are_counts_known(ledger, device);
  return {{"index", index},
          {"card", device.card},
          {"rank", device.rank < 0 ? json() : json(device.rank)},
          {"peak_allocated_bytes", known(counts, device.peak_allocated_bytes)},
          {"peak_reserved_bytes", known(counts, device.peak_reserved_bytes)},
          {"total_bytes", device.total_bytes},
          {"peak_used_bytes", device.peak_used_bytes},
          {"peak_malloc_bytes", device.peak_malloc_bytes},
          {"peak_virtual_bytes", device.peak_virtual_bytes},
          {"peak_pool_bytes", device.peak_pool_bytes},
          {"used_bytes", device.used_bytes},
          {"malloc_bytes", device.malloc_bytes},
          {"virtual_bytes", device.virtual_bytes},
          {"allocations", device.allocations},
          {"frees", device.frees},
          {"refused_allocations", device.refused_allocations},
          {"last_refused_bytes", device.last_refused_bytes},
          {"largest_refused_bytes", device.largest_refused_bytes},
          {"used_at_refusal_bytes", device.used_at_refusal_bytes},
          {"out_of_memory_calls", known(counts, device.out_of_memory_calls)},
          {"last_needed_bytes", known(counts, device.last_needed_bytes)},
          {"largest_needed_bytes", known(counts, device.largest_needed_bytes)}};
}

json read_back_json(const LedgerReadBack& row) {
  return {{"function", row.function},
          {"library", row.library},
          {"operator", row.operation},
          {"kind", row.kind},
          {"place", row.place},
          {"calls", row.calls},
          {"bytes", row.bytes},
          {"zero_calls", row.zero_calls},
          {"uncertain_calls", row.uncertain_calls},
          {"substitute_calls", row.substitute_calls}};
}

json places_json(const LedgerPlaces& places) {
  json rows = json::array();
  for (unsigned i = 0; i < std::min<unsigned>(places.count, kLedgerPlaces); ++i) {
    const LedgerPlace& row = places.rows[i];
    rows.push_back({{"function", row.function},
                    {"place", row.place},
                    {"calls", row.calls},
                    {"largest_bytes", row.largest_bytes},
                    {"kernel_launches", row.kernel_launches}});
  }
  return rows;
}

const char* computing_text(Computing computing) {
  switch (computing) {
    case Computing::on:
      return "on";
    case Computing::off:
      return "off";
    case Computing::unavailable:
      return "unavailable";
    case Computing::not_asked:
      return "not_asked";
    case Computing::no_pytorch:
      break;
  }
  return "no_pytorch";
}

json workspaces_json(const Ledger& ledger) {
  json rows = json::array();
  for (unsigned i = 0; i < std::min<unsigned>(ledger.workspace_count, kLedgerPlaces); ++i) {
    const LedgerWorkspace& row = ledger.workspaces[i];
    rows.push_back({{"name", row.name},
                    {"operator", row.operation},
                    {"device", row.device},
                    {"calls", row.calls},
                    {"largest_allocated_bytes", row.largest_allocated_bytes}});
  }
  return rows;
}

json names_json(const LedgerNames& names) {
  json rows = json::array();
  for (unsigned i = 0; i < std::min<unsigned>(names.count, kLedgerRows); ++i) {
    rows.push_back({{"name", names.rows[i].name}, {"calls", names.rows[i].calls}});
  }
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
  json read_backs = json::array();
  for (unsigned i = 0; i < std::min<unsigned>(ledger.read_back_count, kLedgerRows); ++i) {
    read_backs.push_back(read_back_json(ledger.read_backs[i]));
  }
  return {{"pid", ledger.pid},
          {"parent_pid", ledger.parent_pid},
          {"command", ledger.command},
          {"card", ledger.card},
          {"finished", ledger.finished != 0},
          {"devices", std::move(devices)},
          {"shared_page_allocations", ledger.shared_page_allocations},
          {"peak_pinned_bytes", ledger.peak_pinned_bytes},
          {"peak_managed_bytes", ledger.peak_managed_bytes},
          {"host_refusals", ledger.host_refusals},
          {"last_host_refused_bytes", ledger.last_host_refused_bytes},
          {"kernel_launches", ledger.kernel_launches},
          {"graph_launches", ledger.graph_launches},
          {"copies_to_device", ledger.copies_to_device},
          {"copies_to_device_bytes", ledger.copies_to_device_bytes},
          {"copies_in_device", ledger.copies_in_device},
          {"copies_in_device_bytes", ledger.copies_in_device_bytes},
          {"copies_to_host", ledger.copies_to_host},
          {"copies_to_host_bytes", ledger.copies_to_host_bytes},
          {"out_of_memory", places_json(ledger.out_of_memory)},
          {"free_memory_reads", places_json(ledger.free_memory_reads)},
          {"timing_reads", places_json(ledger.timing_reads)},
          {"blocks_in_question", ledger.blocks_in_question},
          {"pinned_in_question", ledger.pinned_in_question},
          {"read_backs", std::move(read_backs)},
          {"read_back_places_dropped", ledger.read_backs_dropped},
          {"computing", computing_text(ledger.computing)},
          {"computing_note", ledger.computing_note},
          {"refused", names_json(ledger.refused)},
          {"refused_dropped", ledger.refused.dropped},
          {"faults", names_json(ledger.faults)},
          {"unmodelled", names_json(ledger.unmodelled)},
          {"workspaces", workspaces_json(ledger)}};
}

}  // namespace peakbench::emulator

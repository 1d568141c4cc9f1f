#include "host/process_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "core/ledger_json.h"
#include "text/table.h"
#include "units/bytes.h"

namespace peakbench::emulator {
namespace {

constexpr std::size_t kMostRows = 16;

std::string size_or_none(std::uint64_t bytes) { return bytes ? size_text(bytes) : ""; }

// PyTorch's own count: unknown, or of a process that was ended, as of its last event.
std::string counted(const CardUse& use, std::uint64_t bytes, bool exactly = false) {
  if (!are_counts_known(*use.process, use.figures())) return exactly ? "" : "unknown";
  return (use.process->finished ? "" : ">= ") +
         (exactly ? std::to_string(bytes) : size_text(bytes));
}

struct Row {
  std::vector<std::string> who, took;  // cells
  std::uint64_t peak = 0;
};

// The first is never left out of a narrow window, the largest number is first.
std::vector<TableColumn> columns(bool ranks) {
  std::vector<TableColumn> list;
  if (ranks) list.push_back({"rank"});
  list.push_back({"process", ranks ? 5 : 0});
  list.push_back({"device", 1});
  list.push_back({"card", 4});
  list.push_back({"peak", 0, true});
  list.push_back({"allocated", 0, true});
  list.push_back({"reserved", 1, true});
  list.push_back({"needed", 2, true});
  list.push_back({"refused", 2, true});
  list.push_back({"in pools", 3, true});
  list.push_back({"pinned", 3, true});
  list.push_back({"peak, bytes", 6, true});
  list.push_back({"allocated, bytes", 7, true});
  list.push_back({"reserved, bytes", 8, true});
  list.push_back({"by cudaMalloc", 9, true});
  list.push_back({"by virtual memory", 9, true});
  return list;
}

// Columns that would say of every row what goes without saying are empty, and left out.
struct Shown {
  bool ranks = false, devices = false, cards = false;
};

Shown shown_of(const std::vector<CardUse>& uses) {
  Shown shown;
  for (const CardUse& use : uses) {
    shown.ranks |= use.figures().rank >= 0;
    shown.devices |= use.device != 0;
    shown.cards |= use.figures().card != use.device;
  }
  return shown;
}

std::vector<std::string> took(const CardUse& use) {
  const LedgerDevice& figures = use.figures();
  const auto refused = figures.refused_allocations;
  return {size_text(figures.peak_used_bytes),
          counted(use, figures.peak_allocated_bytes),
          counted(use, figures.peak_reserved_bytes),
          size_or_none(figures.largest_needed_bytes),
          refused ? fmt::format("{} time{}", refused, refused == 1 ? "" : "s") : "",
          size_or_none(figures.peak_pool_bytes),
          size_or_none(use.process->peak_pinned_bytes),
          std::to_string(figures.peak_used_bytes),
          counted(use, figures.peak_allocated_bytes, true),
          counted(use, figures.peak_reserved_bytes, true),
          figures.peak_virtual_bytes ? size_text(figures.peak_malloc_bytes) : "",
          size_or_none(figures.peak_virtual_bytes)};
}

Row row_of(const CardUse& use, const Shown& shown) {
  const auto rank = use.figures().rank;
  Row row;
  if (shown.ranks) row.who.push_back(rank < 0 ? "" : std::to_string(rank));
  row.who.push_back(std::to_string(use.process->pid));
  row.who.push_back(shown.devices ? fmt::format("cuda:{}", use.device) : "");
  row.who.push_back(shown.cards ? std::to_string(use.figures().card) : "");
  row.took = took(use);
  row.peak = use.figures().peak_used_bytes;
  return row;
}

// Of several rows: "0-31", or "0" where all have the same.
std::vector<std::string> range_of(const Row& first, const Row& last) {
  std::vector<std::string> cells = first.who;
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (last.who[i] != cells[i]) cells[i] += "-" + last.who[i];
  return cells;
}

// Neighbours that took the same become one.
std::vector<Row> folded(const std::vector<Row>& rows) {
  std::vector<Row> list;
  for (std::size_t first = 0, last = 0; first < rows.size(); first = last + 1) {
    for (last = first; last + 1 < rows.size() && rows[last + 1].took == rows[first].took;) ++last;
    list.push_back({range_of(rows[first], rows[last]), rows[first].took, rows[first].peak});
  }
  return list;
}

// Those with the largest peaks, in their order.
std::vector<Row> largest(const std::vector<Row>& rows) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t at) { return rows[at].peak; });
  order.resize(std::min(order.size(), kMostRows));
  std::ranges::sort(order);
  std::vector<Row> list;
  for (const std::size_t at : order) list.push_back(rows[at]);
  return list;
}

}  // namespace

std::string process_table(const std::vector<CardUse>& uses, int width) {
  if (uses.empty()) return "";
  const Shown shown = shown_of(uses);
  std::vector<Row> rows;
  for (const CardUse& use : uses) rows.push_back(row_of(use, shown));
  if (rows.size() > kMostRows) rows = folded(rows);
  const auto all = rows.size();
  rows = largest(rows);
  std::vector<std::vector<std::string>> cells;
  for (const Row& row : rows) {
    cells.push_back(row.who);
    cells.back().insert(cells.back().end(), row.took.begin(), row.took.end());
  }
  auto text = table_text(columns(shown.ranks), std::move(cells), width);
  if (all > rows.size())
    text += fmt::format("... and {} more, which took no more than these (--json has all)\n",
                        all - rows.size());
  return text;
}

}  // namespace peakbench::emulator

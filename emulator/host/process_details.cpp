#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/numbers.h"
#include "core/ledger_json.h"
#include "emulator/host/emulation_text.h"

namespace peakbench::emulator {
namespace {

struct WayRound {
  std::string_view beginning;
  std::string_view sentence;
};

// The first that fits.
constexpr auto kWaysRound = std::to_array<WayRound>({
    {"cudnn", "torch.backends.cudnn.enabled = False runs PyTorch's own kernels instead"},
    {"cusolver", "torch.linalg on the CPU gives the same tensors; its memory is then the host's"},
    {"cusparseLt",
     "a dense tensor in place of the semi-structured one takes more memory, not less"},
    {"cusparse", "a dense tensor in place of the sparse one shows an upper bound"},
    {"cuMemExportToShareableHandle", "keep the tensor in the process that made it"},
    {"cuMemImportFromShareableHandle", "keep the tensor in the process that made it"},
    {"cudaMemPool", "PyTorch's own allocator (backend:native) does without memory pools of CUDA's"},
    {"cudaMallocFromPool", "PyTorch's own allocator (backend:native) does without them"},
    {"cudaGraph", "measure the program without CUDA graphs: capture keeps a pool of its own"},
    {"cuGraph", "measure the program without CUDA graphs: capture keeps a pool of its own"},
    {"cuLink", "kernels that are compiled in parts cannot be loaded; compile them in one"},
    {"cuFile", "read the file with torch.load, into memory of the host"},
    {"nvshmem", "use torch.distributed with NCCL, which the card has for a rank alone"},
    {"ncclMem", "leave NCCL's user buffers out (NCCL_NVLS_ENABLE=0, no register_mem_pool)"},
    {"ncclComm", "leave NCCL's user buffers and windows out"},
    {"cupti", "run without a profiler: there is nothing on the card that it could time"},
});

// What a user can do about a function that the emulated card refuses: a sentence; empty where
// nothing is known.
std::string_view way_round(std::string_view function) {
  const auto found = std::ranges::find_if(
      kWaysRound, [&](const WayRound& known) { return function.starts_with(known.beginning); });
  return found == kWaysRound.end() ? std::string_view() : found->sentence;
}

constexpr std::size_t kMostDetails = 12;

std::string times(std::uint64_t calls) {
  return fmt::format("{} call{}", calls, calls == 1 ? "" : "s");
}

// How far the program can have relied on what it read.
std::string reliance(const LedgerReadBack& row) {
  if (!unknown_calls(row)) return "known: copied there by the program, or computed";
  std::string text;
  if (row.zero_calls) text = fmt::format("{} answered with zeros", row.zero_calls);
  if (row.uncertain_calls) {
    text += fmt::format("{}{} with what was copied there before later work",
                        text.empty() ? "" : ", ", row.uncertain_calls);
  }
  if (row.substitute_calls) {
    text += fmt::format("{}{} with plausible values in place of unknown ones",
                        text.empty() ? "" : ", ", row.substitute_calls);
  }
  return text;
}

std::string read_back_text(const LedgerReadBack& row) {
  const std::string where =
      row.operation[0] ? fmt::format("{} in {}", row.operation, row.function) : row.function;
  const std::string kind = word_of(row.kind);
  return fmt::format("  read back  {}{} ({}){}: {}, {} bytes; {}", kind,
                     kind.empty() ? where : fmt::format(" by {}", where), row.library,
                     row.place[0] ? fmt::format(" at {}", row.place) : "", times(row.calls),
                     row.bytes, reliance(row));
}

class Details {
 public:
  Details(const std::vector<const Ledger*>& ledgers, const std::vector<CardUse>& uses)
      : ledgers_(ledgers), uses_(uses) {
    for (const CardUse& use : uses) users_.insert(use.process);
  }

  std::string text() && {
    commands();
    unknown_counts();
    out_of_memory();
    read_backs();
    facts("refused", FactList::refused);
    ways_round();
    facts("fault", FactList::faults);
    facts("unmodelled", FactList::unmodelled);
    nccl_calls();
    launches();
    return std::move(out_);
  }

 private:
  // "rank 0", "process 4711".
  std::string name(const Ledger& ledger) const {
    const auto use = std::ranges::find(uses_, &ledger, &CardUse::process);
    return use == uses_.end() ? fmt::format("process {}", ledger.pid) : name_of(*use, uses_);
  }

  // "; in rank 0", "; in 4 processes"; nothing where there is one process anyway.
  std::string whose(const std::set<const Ledger*>& processes) const {
    if (ledgers_.size() < 2) return "";
    return processes.size() == 1 ? "; in " + name(**processes.begin())
                                 : fmt::format("; in {} processes", processes.size());
  }

  // Processes with the same command in one line; those that took nothing, in one for all.
  void commands() {
    std::map<std::pair<std::string, bool>, std::vector<const Ledger*>> alike;
    for (const Ledger* ledger : ledgers_)
      if (users_.contains(ledger))
        alike[{ledger->command, ledger->finished != 0}].push_back(ledger);
    std::vector<std::pair<std::int32_t, std::string>> lines;
    for (const auto& [key, processes] : alike) {
      const auto [first, last] = std::pair(processes.front()->pid, processes.back()->pid);
      const auto who = first == last
                           ? fmt::format("process {}", first)
                           : fmt::format("{} processes, {} to {}", processes.size(), first, last);
      const auto how = key.second ? "" : " (did not end by itself)";
      lines.emplace_back(first, fmt::format("{}{}  {}", who, how, key.first));
    }
    std::ranges::sort(lines);
    std::vector<std::string> texts;
    for (auto& [pid, line] : lines) texts.push_back(std::move(line));
    add(texts);
    const auto others = ledgers_.size() - users_.size();
    if (others && !users_.empty())
      out_ += fmt::format("{} more process{} asked for a card and took no memory of it\n", others,
                          others == 1 ? "" : "es");
  }

  void unknown_counts() {
    std::map<std::string, std::set<const Ledger*>> reasons;
    for (const CardUse& use : uses_) {
      const Ledger& ledger = *use.process;
      if (are_counts_known(ledger, use.figures())) continue;
      if (ledger.counts_known) {
        reasons["the process ended before they were counted"].insert(&ledger);
      } else if (ledger.computing != Computing::no_pytorch) {
        reasons[ledger.computing_note[0] ? ledger.computing_note
                                         : "none of its operators used the card"]
            .insert(&ledger);
      } else {
        reasons["the program does not use PyTorch"].insert(&ledger);
      }
    }
    for (const auto& [reason, processes] : reasons)
      out_ += fmt::format("  PyTorch's peaks (allocated, reserved) are not known: {}{}\n", reason,
                          whose(processes));
  }

  void out_of_memory() {
    std::vector<std::string> lines;
    for (const CardUse& use : uses_) {
      const LedgerDevice& device = use.figures();
      if (!device.refused_allocations) continue;
      lines.push_back(fmt::format(
          "  {}, cuda:{}: out of memory: the card refused {}, PyTorch's second tries included; the "
          "largest that was refused: {}{}",
          name(*use.process), use.device,
          device.refused_allocations == 1 ? "one request"
                                          : fmt::format("{} requests", device.refused_allocations),
          size_text(device.largest_refused_bytes),
          device.largest_needed_bytes
              ? fmt::format("; PyTorch would have needed {} at least ({} bytes): what it had "
                            "handed out when it ran out, and what was asked for then",
                            size_text(device.largest_needed_bytes), device.largest_needed_bytes)
              : ""));
    }
    add(lines);
  }

  // Those that were not known first.
  void read_backs() {
    const auto place = [](const LedgerReadBack& row) {
      return std::tuple(!unknown_calls(row), row.kind, std::string_view(row.operation),
                        std::string_view(row.function), std::string_view(row.place),
                        std::string_view(row.library));
    };
    using Place = decltype(place(std::declval<LedgerReadBack>()));
    std::map<Place, std::pair<LedgerReadBack, std::set<const Ledger*>>> alike;
    for (const Ledger* ledger : ledgers_)
      for_each_read(*ledger, [&](const LedgerReadBack& row) {
        auto& [sum, processes] =
            alike.try_emplace(place(row), row, std::set<const Ledger*>()).first->second;
        if (!processes.empty()) {
          sum.calls += row.calls;
          sum.bytes += row.bytes;
          sum.zero_calls += row.zero_calls;
          sum.uncertain_calls += row.uncertain_calls;
          sum.substitute_calls += row.substitute_calls;
        }
        processes.insert(ledger);
      });
    std::vector<std::string> lines;
    for (const auto& [key, row] : alike)
      lines.push_back(read_back_text(row.first) + whose(row.second));
    add(lines);
  }

  // By their texts: several processes have the same.
  void facts(const char* what, FactList list) {
    std::vector<std::string> order;
    std::map<std::string, std::pair<std::uint64_t, std::set<const Ledger*>>> alike;
    const auto add_one = [&](const Ledger* ledger, const std::string& text, std::uint64_t calls) {
      auto& [sum, processes] = alike[text];
      if (processes.empty()) order.push_back(text);
      sum += calls;
      processes.insert(ledger);
    };
    for (const Ledger* ledger : ledgers_) {
      for_each_fact(*ledger, [&](Fact kind, const LedgerFact& row) {
        if (list_of(kind) == list) add_one(ledger, text_of(kind, row), row.calls);
      });
      if (list != FactList::unmodelled) continue;
      for_each_row(ledger->workspaces, [&](const LedgerWorkspace& row) {
        add_one(ledger, list_text_of(row), row.calls);
      });
    }
    std::vector<std::string> lines;
    for (const auto& text : order)
      lines.push_back(fmt::format("  {}  {}: {}{}", what, text, times(alike[text].first),
                                  whose(alike[text].second)));
    add(lines);
  }

  void ways_round() {
    std::set<std::string_view> said;
    constexpr auto refused = static_cast<std::size_t>(Fact::refused_call);
    for (const Ledger* ledger : ledgers_)
      for_each_row(ledger->facts[refused], [&](const LedgerFact& row) {
        const auto sentence = way_round(row.function);
        if (!sentence.empty() && said.insert(sentence).second)
          out_ += fmt::format("    a way round: {}\n", sentence);
      });
  }

  // Of all processes together.
  void nccl_calls() {
    std::map<NcclCall, std::pair<LedgerNcclCalls, std::set<const Ledger*>>> alike;
    for (const Ledger* ledger : ledgers_)
      for_each_nccl_call(*ledger, [&](NcclCall call, const LedgerNcclCalls& row) {
        auto& [sum, processes] = alike[call];
        sum.calls += row.calls;
        sum.bytes += row.bytes;
        sum.unsized_calls += row.unsized_calls;
        processes.insert(ledger);
      });
    for (const auto& [call, found] : alike) {
      const auto& [sum, processes] = found;
      out_ += fmt::format(
          "  {}: {}, {}{}{}\n", word_of(call), times(sum.calls), size_text(sum.bytes),
          sum.unsized_calls ? fmt::format(" and {} of unknown size", sum.unsized_calls) : "",
          whose(processes));
    }
  }

  void launches() {
    std::uint64_t sum = 0;
    for (const Ledger* ledger : ledgers_) sum += ledger->kernel_launches;
    if (!users_.empty()) out_ += fmt::format("  {} kernel launches, none run\n", sum);
  }

  void add(const std::vector<std::string>& lines) {
    for (std::size_t i = 0; i < std::min(lines.size(), kMostDetails); ++i) out_ += lines[i] + "\n";
    if (lines.size() > kMostDetails)
      out_ += fmt::format("  ... and {} more (--json has all)\n", lines.size() - kMostDetails);
  }

  const std::vector<const Ledger*>& ledgers_;
  const std::vector<CardUse>& uses_;
  std::set<const Ledger*> users_;
  std::string out_;
};

}  // namespace

std::string process_details(const std::vector<const Ledger*>& ledgers,
                            const std::vector<CardUse>& uses) {
  return Details(ledgers, uses).text();
}

}  // namespace peakbench::emulator

#include "emulator/host/device_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/numbers.h"

namespace peakbench::emulator {
namespace {

// Where an allocation was refused, the allocator gave cached segments back, and what is reserved
// depends on how much the context left.
bool was_refused(const Answer& answer) { return answer.out_of_memory.has_value(); }

std::string release_of(const EmulatedProgram& program) {
  return program.torch ? "PyTorch " + program.torch->version : "the program's release of PyTorch";
}

// An estimate has fewer digits than a count.
std::string rounded(std::uint64_t bytes) {
  constexpr double kMebibyte = 1 << 20;
  const auto mebibytes = static_cast<double>(bytes) / kMebibyte;
  return mebibytes < 1024 ? fmt::format("{:.0f} MiB", mebibytes)
                          : fmt::format("{:.1f} GiB", mebibytes / 1024);
}

std::optional<NcclMemory> nccl_memory_of(const Answer& answer) {
  std::optional<NcclMemory> found;
  for (const NcclMemory& one : kNcclOfRanks)
    if (one.ranks <= answer.communicator_ranks) found = one;
  return found;
}

std::string nccl_text(const DeviceMemory& memory) {
  if (memory.nccl)
    return fmt::format(
        ", {} for NCCL's buffers and what else lay there, {} to {}, in runs on {} A100s",
        rounded(memory.nccl->median), rounded(memory.nccl->least), rounded(memory.nccl->most),
        memory.nccl->ranks);
  return memory.lacks_nccl ? "; NCCL's buffers are missing" : "";
}

}  // namespace

std::optional<DeviceMemory> device_memory_of(const Answer& answer) {
  if (!answer.card) return std::nullopt;
  const auto one = answer.shown_context.bytes;
  DeviceMemory memory{
      .given_bytes = answer.peak_bytes,
      .total_bytes = answer.total_bytes,
      .context_bytes = answer.processes * one,
      .contexts = answer.processes,
      .context_measured = answer.shown_context.source != ContextSource::largest_known,
      .nccl = nccl_memory_of(answer)};
  memory.lacks_nccl = answer.communicator_ranks && !memory.nccl;
  if (answer.context_included)
    memory.given_bytes -= std::min(memory.given_bytes, memory.context_bytes);
  return memory;
}

std::string device_memory_line(const DeviceMemory& memory) {
  const auto contexts = memory.contexts == 1
                            ? fmt::format("a CUDA context of {}", rounded(memory.context_bytes))
                            : fmt::format("{} CUDA contexts of {} together", memory.contexts,
                                          rounded(memory.context_bytes));
  return fmt::format(
      "As nvidia-smi would show it: about {}, an estimate ({} from CUDA, {}{}{}){}.\n",
      rounded(memory.bytes()), size_text(memory.given_bytes), contexts,
      memory.context_measured ? "" : ", the largest known: of this card none is", nccl_text(memory),
      memory.exceeds_card() ? ": more than the card has" : "");
}

nlohmann::json to_json(const DeviceMemory& memory) {
  const auto nccl_json = [&]() -> nlohmann::json {
    if (!memory.nccl) return nullptr;
    return {{"bytes", memory.nccl->median},
            {"bytes_range", {memory.nccl->least, memory.nccl->most}},
            {"measured_ranks", memory.nccl->ranks}};
  };
  return {{"estimate", true},
          {"bytes", memory.bytes()},
          {"exceeds_card", memory.exceeds_card()},
          {"given_bytes", memory.given_bytes},
          {"context_bytes", memory.context_bytes},
          {"contexts", memory.contexts},
          {"context_measured", memory.context_measured},
          {"nccl", nccl_json()},
          {"lacks_nccl", memory.lacks_nccl},
          {"on_real_cards_percent",
           memory.nccl ? nlohmann::json{kEstimateLowestOfRanks, kEstimateHighestOfRanks}
                       : nlohmann::json{kEstimateLowest, kEstimateHighest}}};
}

std::string reserved_line(const EmulatedProgram& program, const Answer& answer) {
  if (!answer.card) return "";
  return fmt::format(
      "Reserved: {} for {} with these settings of its allocator{}; compared with real cards that "
      "ran another release, it was {:.0f}% too low to {:.0f}% too high.\n",
      records::verdict_word(program.verdict.kind), release_of(program),
      was_refused(answer) ? " and the memory that the CUDA context leaves it" : "",
      -kEstimateLowest, kEstimateHighest);
}

nlohmann::json reserved_json(const EmulatedProgram& program, const Answer& answer) {
  if (!answer.card) return nullptr;
  return {{"verdict", records::verdict_word(program.verdict.kind)},
          {"torch", program.torch ? nlohmann::json(program.torch->version) : nullptr},
          {"depends_on_context", was_refused(answer)},
          {"on_real_cards_percent", {kEstimateLowest, kEstimateHighest}}};
}

}  // namespace peakbench::emulator

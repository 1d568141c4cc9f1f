// An estimate of what nvidia-smi would show on a real card. It adds the CUDA context and NCCL's
// buffers, which the emulated card does not count, from published measurements. Other releases of
// PyTorch keep other segments reserved, so it is not exact.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "emulator/host/answer.h"
#include "emulator/host/emulated_program.h"

namespace peakbench::emulator {

// Error of the estimate with the context, against nvidia-smi on a real card with another release of
// PyTorch. Lowest and highest, in per cent of what nvidia-smi showed (docs/evidence/emulator.md,
// "Reserved memory with another release").
inline constexpr double kEstimateLowest = -16, kEstimateHighest = 19;
// With NCCL's buffers, too: on two and four cards.
inline constexpr double kEstimateLowestOfRanks = -20, kEstimateHighestOfRanks = 19;

// Memory on each card in addition to PyTorch's and a context, in a publisher's runs with this
// number of ranks, one a card. That is NCCL's buffers, and the difference in reserved memory
// between two releases of PyTorch (docs/evidence/fidelity.md: 2.6.0, less the median of one card).
// NCCL does not report its memory.
struct NcclMemory {
  std::size_t ranks = 0;
  std::uint64_t least = 0, median = 0, most = 0;
};
inline constexpr std::array kNcclOfRanks{
    NcclMemory{.ranks = 2, .least = 815ULL << 20, .median = 1921ULL << 20, .most = 3413ULL << 20},
    NcclMemory{.ranks = 4, .least = 884ULL << 20, .median = 2620ULL << 20, .most = 3098ULL << 20}};

struct DeviceMemory {
  std::uint64_t given_bytes = 0;    // by CUDA to all processes together: what PyTorch reserved, ...
  std::uint64_t total_bytes = 0;    // of the card
  std::uint64_t context_bytes = 0;  // all contexts together
  std::size_t contexts = 1;         // one for each process on the card
  // What others measured of such a card, or the user set aside; otherwise the largest known.
  bool context_measured = false;
  bool lacks_nccl = false;  // only communicators of one rank, for which no measurement is published
  // Of a communicator of several: by the runs with the most ranks that are not more than here.
  std::optional<NcclMemory> nccl;

  // It is an estimate: the program may still fit.
  bool exceeds_card() const { return bytes() > total_bytes; }
  std::uint64_t bytes() const { return given_bytes + context_bytes + (nccl ? nccl->median : 0); }
};

// Of the card that the answer is about; nullopt where none was used.
std::optional<DeviceMemory> device_memory_of(const Answer& answer);

// "As nvidia-smi would show it: about 0.5 GiB, an estimate (...).\n"
std::string device_memory_line(const DeviceMemory& memory);
nlohmann::json to_json(const DeviceMemory& memory);

// Reserved memory has a verdict of its own. The program's, but for one release of PyTorch with one
// set of its allocator's settings: "Reserved: exact for PyTorch 2.11.0 ...\n". Empty for a program
// that used no card.
std::string reserved_line(const EmulatedProgram& program, const Answer& answer);
// null where there is no such line.
nlohmann::json reserved_json(const EmulatedProgram& program, const Answer& answer);

}  // namespace peakbench::emulator

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace peakbench::emulator {

// The card that a process sees: the values of a profile (emulator/cards/*.json) that an entry point
// can return. Plain data: the launcher fills it, the environment passes it as JSON, and the stub
// libraries read it.

// When a stream's work is done (late_streams.h).
enum class Streams { at_once, soon, late };

// What cudaGetDeviceProperties, cudaDeviceGetAttribute and NVML answer. Sizes in bytes.
struct CardFacts {
  std::string id;    // h100-80gb
  std::string name;  // as the driver reports it: NVIDIA H100 80GB HBM3
  int major = 0;
  int minor = 0;
  int binary_arch = 0;  // the code of this LibTorch that the card would run: 90 for sm_90
  int multiprocessor_count = 0;
  int max_threads_per_multiprocessor = 0;
  int max_blocks_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  int warp_size = 32;
  int clock_khz = 0;
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  bool ecc = false;
  bool peer_access = false;  // between several of them
  std::uint64_t total_memory_bytes = 0;
  std::uint64_t context_bytes = 0;  // what the user wants set aside for the CUDA context
  std::uint64_t shared_memory_per_block_bytes = 0;
  std::uint64_t shared_memory_per_block_optin_bytes = 0;
  std::uint64_t shared_memory_per_multiprocessor_bytes = 0;
  std::uint64_t l2_cache_bytes = 0;
  // What the vendor publishes, without sparsity; 0: nothing is known of it.
  std::uint64_t memory_bytes_per_second = 0;
  std::uint64_t fp32_flops_per_second = 0;
  std::uint64_t tf32_flops_per_second = 0;
  std::uint64_t fp16_flops_per_second = 0;  // of matrix products, as the next two
  std::uint64_t bf16_flops_per_second = 0;
  std::uint64_t fp8_flops_per_second = 0;
  int count = 1;  // devices of this kind in the machine
  // Streams lag behind the host (late_streams.h); otherwise everything is done at once.
  bool late_streams = false;
  // They lag a little: work is done when it is asked for a second time.
  bool soon_streams = false;
  // As cudaDriverGetVersion says it, 12080 for CUDA 12.8; 0: a driver as new as the program needs.
  int driver_cuda_version = 0;
  // Versions of the program's PyTorch, which chooses operators by them: 12040, 90100, 22105. 0:
  // unknown, assume the versions that the stub libraries are made for.
  int cuda_version = 0;
  int cudnn_version = 0;
  int nccl_version = 0;
  // Card files with measured workspaces of convolutions (core/convolutions.h): the card's own, and
  // those of other cards of its compute capability. Empty: none.
  std::string measured_in;
  std::vector<std::string> measured_elsewhere;
};

inline Streams streams_of(const CardFacts& card) {
  if (card.late_streams) return Streams::late;
  return card.soon_streams ? Streams::soon : Streams::at_once;
}

// Under which name the facts travel to the emulated process, as one line of JSON.
inline constexpr const char* kCardVariable = "PEAKBENCH_EMULATED_CARD";
// Folder where each emulated process keeps its ledger, PID.N.ledger. Unset: in memory only.
inline constexpr const char* kLedgerVariable = "PEAKBENCH_EMULATION_LEDGERS";
// Folder of what the processes of one program share, such as the memory of the cards. Empty: this
// process has all to itself.
inline constexpr const char* kSharedVariable = "PEAKBENCH_EMULATION_SHARED";
// How NCCL's ranks find each other: "alone", they do not; or for how many seconds they wait.
inline constexpr const char* kRanksVariable = "PEAKBENCH_EMULATED_RANKS";
// "3 of 64": which rank a program is, of a world that does not exist (`emulate --world`).
inline constexpr const char* kWorldVariable = "PEAKBENCH_EMULATED_WORLD";
// Set, for tests: a page without access follows each allocation.
inline constexpr const char* kGuardVariable = "PEAKBENCH_EMULATED_GUARD";
// Set to a number, for tests: threads are held up for a moment now and then, at other places with
// another number.
inline constexpr const char* kDelaysVariable = "PEAKBENCH_EMULATED_DELAYS";

inline constexpr int kMaxDevices = 64;
inline constexpr int kMaxThreadsPerBlock = 1024;  // of every card

std::string to_json(const CardFacts& card);
// Throws std::invalid_argument with what is wrong.
CardFacts card_from_json(const std::string& json);

// What the management of a card (NVML, nvidia-smi) says of one on which nothing runs. No kernel
// runs on an emulated card, so it neither warms nor draws power; programs log these figures, and
// none of memory depends on them. They are made up and the same for all cards.

inline constexpr unsigned kIdleCelsius = 35;
inline constexpr unsigned kHottestCelsius = 90;  // where a card slows down
inline constexpr unsigned kIdleMilliwatts = 50'000;
inline constexpr unsigned kMostMilliwatts = 300'000;
inline constexpr unsigned kIdlePercent = 0;  // of its time in which a kernel runs
// The branch that came with CUDA 13.0; there is no driver here.
inline constexpr const char* kDriverVersion = "580.00";

}  // namespace peakbench::emulator

// Keeping the ledger: the file it lives in, and entering names, launches and read-backs.
#include "core/ledger.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "core/callers.h"
#include "core/ledger_json.h"
#include "core/python_place.h"
#include "core/read_kinds.h"
#include "core/state.h"

namespace peakbench::emulator {
namespace {

std::mutex names_mutex;  // of the rows of names and of read-backs

// The file is named after the process; a second program in the same process (exec) gets a name of
// its own.
int create_file() {
  const char* folder = std::getenv(kLedgerVariable);
  if (!folder || !*folder) return -1;
  for (int attempt = 0; attempt < 100; ++attempt) {
    char name[64];
    std::snprintf(name, sizeof name, "/%d.%d.ledger", getpid(), attempt);
    const std::string path = std::string(folder) + name;
    const int file = open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0) return file;
    if (errno != EEXIST) break;
  }
  std::fprintf(stderr,
               "peakbench emulator: cannot write to %s (%s): this process will not be reported\n",
               folder, std::strerror(errno));
  return -1;
}

void* map_ledger() {
  const int file = create_file();
  void* at = MAP_FAILED;
  if (file >= 0) {
    if (ftruncate(file, sizeof(Ledger)) == 0) {
      at = mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    close(file);
  }
  if (at == MAP_FAILED) {
    at = mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  if (at == MAP_FAILED) std::abort();
  return at;
}

void read_command(char* out, std::size_t size) {
  const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  const ssize_t got = file < 0 ? 0 : read(file, out, size - 1);
  if (file >= 0) close(file);
  const auto length = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  out[length] = 0;
  std::replace(out, out + length, '\0', ' ');
  if (length && out[length - 1] == ' ') out[length - 1] = 0;
}

// A number that torchrun and its like set; `otherwise` where there is none.
std::int32_t from_environment(const char* variable, std::int32_t otherwise) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return otherwise;
  std::int32_t number = 0;
  const auto* const end = text + std::strlen(text);
  const auto [read, error] = std::from_chars(text, end, number);
  return error == std::errc{} && read == end ? number : otherwise;
}

void write_header(Ledger& ledger) {
  ledger.magic = kLedgerMagic;
  ledger.bytes = sizeof(Ledger);
  ledger.pid = getpid();
  ledger.parent_pid = getppid();
  ledger.elastic_attempt = from_environment("TORCHELASTIC_RESTART_COUNT", -1);
  read_command(ledger.command, sizeof ledger.command);
}

void enter_name(LedgerNames& names, const char* name, bool* fresh) {
  std::lock_guard lock(names_mutex);
  *fresh = false;
  for (std::uint32_t i = 0; i < names.count; ++i) {
    if (std::strcmp(names.rows[i].name, name) == 0) {
      ++names.rows[i].calls;
      return;
    }
  }
  *fresh = true;
  if (names.count == kLedgerRows) {
    ++names.dropped;
    return;
  }
  LedgerName& row = names.rows[names.count];
  std::snprintf(row.name, sizeof row.name, "%s", name);
  row.calls = 1;
  ++names.count;
}

void enter_workspace(const char* name, int device, std::uint64_t allocated_bytes) {
  const Caller& caller = find_caller();
  Ledger& entry = ledger();
  std::lock_guard lock(names_mutex);
  auto* const end = entry.workspaces + entry.workspace_count;
  auto* row = std::find_if(entry.workspaces, end, [&](const LedgerWorkspace& known) {
    return known.device == static_cast<std::uint32_t>(device) &&
           std::strcmp(known.name, name) == 0 &&
           std::strcmp(known.operation, caller.operation) == 0;
  });
  if (row == end) {
    if (entry.workspace_count == kLedgerPlaces) return;  // whoever adds up the calls sees it
    row->device = static_cast<std::uint32_t>(device);
    std::snprintf(row->name, sizeof row->name, "%s", name);
    std::memcpy(row->operation, caller.operation, sizeof row->operation);
    ++entry.workspace_count;
  }
  ++row->calls;
  row->largest_allocated_bytes = std::max(row->largest_allocated_bytes, allocated_bytes);
}

void add(std::uint64_t& counter) {
  std::atomic_ref(counter).fetch_add(1, std::memory_order_relaxed);
}

__attribute__((destructor)) void at_exit() {
  // Only a process that used CUDA has a ledger; asking for it here would make one.
  if (!machine_state_made()) return;
  ledger().finished = 1;
  if (state().share) state().share->leave();
}

}  // namespace

Ledger* open_ledger(const CardFacts& card, int device_count) {
  auto* ledger = static_cast<Ledger*>(map_ledger());
  write_header(*ledger);
  std::snprintf(ledger->card, sizeof ledger->card, "%s", card.id.c_str());
  ledger->device_count = device_count;
  const auto rank = from_environment("RANK", -1);
  const auto ranks = rank < 0 ? 0 : from_environment("WORLD_SIZE", 0);
  for (int i = 0; i < device_count; ++i) {
    ledger->devices[i].total_bytes = card.total_memory_bytes;
    ledger->devices[i].rank = rank;
    ledger->devices[i].ranks = ranks;
  }
  return ledger;
}

void detach_ledger(Ledger* ledger) {
  void* at = mmap(ledger, sizeof(Ledger), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (at != MAP_FAILED) write_header(*ledger);
}

void enter_read_back(Ledger& ledger, std::uint64_t bytes, Answer answer, const char* kind) {
  const Caller& caller = find_caller();
  // Where in the program only matters where a value was not known.
  char place[sizeof LedgerReadBack::place] = "";
  bool makes_integer = false;
  if (answer != Answer::kept) find_python_place(place, sizeof place, makes_integer);
  if (makes_integer && std::strcmp(kind, kReadFloating) == 0) kind = kReadInteger;
  std::lock_guard lock(names_mutex);
  auto* const end = ledger.read_backs + ledger.read_back_count;
  auto* row = std::find_if(ledger.read_backs, end, [&](const LedgerReadBack& known) {
    return std::strcmp(known.function, caller.function) == 0 &&
           std::strcmp(known.library, caller.library) == 0 &&
           std::strcmp(known.operation, caller.operation) == 0 &&
           std::strcmp(known.kind, kind) == 0 && std::strcmp(known.place, place) == 0;
  });
  if (row == end) {
    if (ledger.read_back_count == kLedgerRows) {
      ++ledger.read_backs_dropped;
      return;
    }
    std::memcpy(row->function, caller.function, sizeof row->function);
    std::memcpy(row->library, caller.library, sizeof row->library);
    std::memcpy(row->operation, caller.operation, sizeof row->operation);
    std::snprintf(row->kind, sizeof row->kind, "%s", kind);
    std::memcpy(row->place, place, sizeof row->place);
    ++ledger.read_back_count;
  }
  ++row->calls;
  row->bytes += bytes;
  row->zero_calls += answer == Answer::zeros;
  row->uncertain_calls += answer == Answer::uncertain;
  row->substitute_calls += answer == Answer::substitute;
}

void count_device_work() { tell_of_work(kPeakbenchLibraryCall, nullptr); }

void count_graph_launch() {
  add(ledger().graph_launches);
  tell_of_work(kPeakbenchLoadedAtRunTime, nullptr);
}

void refuse(const char* name) {
  bool fresh = false;
  enter_name(ledger().refused, name, &fresh);
  if (fresh) std::fprintf(stderr, "peakbench emulator: %s is not emulated; it was refused\n", name);
}

void fault(const char* what) {
  bool fresh = false;
  enter_name(ledger().faults, what, &fresh);
  if (fresh) std::fprintf(stderr, "peakbench emulator: %s\n", what);
}

void unmodelled(const char* what) {
  bool fresh = false;
  enter_name(ledger().unmodelled, what, &fresh);
}

void missing_workspace(const char* what) {
  unmodelled(what);
  const int device = current_device();
  std::uint64_t allocated = 0;
  if (allocated_now(device, allocated)) enter_workspace(what, device, allocated);
}

}  // namespace peakbench::emulator

extern "C" void peakbench_emulator_refuse(const char* name) { peakbench::emulator::refuse(name); }

extern "C" void peakbench_emulator_missing_workspace(const char* what) {
  peakbench::emulator::missing_workspace(what);
}

extern "C" void peakbench_emulator_work(void) { peakbench::emulator::count_device_work(); }

extern "C" const void* peakbench_emulator_ledger(void) { return &peakbench::emulator::ledger(); }

extern "C" const char* peakbench_emulator_report(void) {
  using namespace peakbench::emulator;
  // A process without a card answers too: with no devices.
  thread_local std::string text;
  text = to_json(ledger()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return text.c_str();
}

extern "C" int peakbench_emulator_in_use(void) {
  return peakbench::emulator::machine_state_made() ? 1 : 0;
}

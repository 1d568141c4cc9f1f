// Keeping the ledger: the file it lives in, and entering names, launches and read-backs.
#include "core/ledger.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "core/callers.h"
#include "core/ledger_json.h"
#include "core/own_ledger.h"
#include "core/state.h"

namespace peakbench::emulator {
namespace {

std::mutex rows_mutex;

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

void write_header(Ledger& ledger) {
  ledger.magic = kLedgerMagic;
  ledger.bytes = sizeof(Ledger);
  ledger.pid = getpid();
  ledger.parent_pid = getppid();
  ledger.elastic_attempt = from_environment("TORCHELASTIC_RESTART_COUNT", -1);
  read_command(ledger.command, sizeof ledger.command);
}

// The row that `is_it`, a new one, or the one for what finds none. With rows_mutex.
template <typename Table, typename Is>
auto& row_in(Table& table, Is&& is_it) {
  auto* const end = table.rows + table.count;
  auto* const row = std::find_if(table.rows, end, is_it);
  if (row != end) return *row;
  if (table.count == std::size(table.rows)) return table.beyond;
  ++table.count;
  return *row;
}

template <std::size_t size>
void put(char (&to)[size], const char* text) {
  std::snprintf(to, size, "%s", text);
}

// As much of it as a row keeps.
template <std::size_t size>
bool is(const char (&kept)[size], const char* text) {
  return std::strncmp(kept, text, size - 1) == 0;
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
  for (int i = 0; i < device_count; ++i) ledger->devices[i].total_bytes = card.total_memory_bytes;
  enter_rank(*ledger);
  return ledger;
}

void detach_ledger(Ledger* ledger) {
  void* at = mmap(ledger, sizeof(Ledger), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (at != MAP_FAILED) write_header(*ledger);
}

LedgerTime ledger_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<LedgerTime>(now.tv_sec) * 1'000'000'000 + static_cast<LedgerTime>(now.tv_nsec);
}

bool& reads_unbounded() {
  static thread_local bool is_so = false;
  return is_so;
}

void enter_read_back(Ledger& ledger, std::uint64_t bytes, Answer answer, ReadKind kind) {
  const auto now = ledger_now();
  const Caller& caller = find_caller();
  // Where in the program only matters where a value was not known.
  char place[sizeof LedgerReadBack::place] = "";
  PythonUse use;
  if (answer != Answer::kept) find_python_place(place, sizeof place, &use);
  if (use.makes_integer && kind == ReadKind::floating) kind = ReadKind::integer;
  if (use.only_logged && kind == ReadKind::integer) kind = ReadKind::logged;
  if (std::exchange(reads_unbounded(), false) && kind == ReadKind::integer)
    add_one(ledger.unbounded_integers);
  auto& table =
      answer == Answer::kept ? ledger.known_reads : ledger.reads[static_cast<std::uint32_t>(kind)];
  std::lock_guard lock(rows_mutex);
  auto& row = row_in(table, [&](const LedgerReadBack& known) {
    return known.kind == kind && is(known.function, caller.function) &&
           is(known.library, caller.library) && is(known.operation, caller.operation) &&
           is(known.place, place);
  });
  if (!row.calls) row.first = now;
  if (!row.calls && &row != &table.beyond) {
    put(row.function, caller.function);
    put(row.library, caller.library);
    put(row.operation, caller.operation);
    put(row.place, place);
  }
  row.kind = kind;
  row.only_printed = use.only_printed && (!row.calls || row.only_printed);
  ++row.calls;
  row.bytes += bytes;
  row.zero_calls += answer == Answer::zeros;
  row.uncertain_calls += answer == Answer::uncertain;
  row.substitute_calls += answer == Answer::substitute;
}

void count_device_work() { tell_of_work(kPeakbenchLibraryCall, nullptr); }

void count_graph_launch() {
  add_one(ledger().graph_launches);
  tell_of_work(kPeakbenchLoadedAtRunTime, nullptr);
}

void enter(Fact kind, const FactDetails& details) {
  const auto now = ledger_now();
  LedgerFacts& facts = ledger().facts[static_cast<std::uint32_t>(kind)];
  LedgerFact fresh{};
  {
    std::lock_guard lock(rows_mutex);
    auto& row = row_in(facts, [&](const LedgerFact& known) {
      return is(known.function, details.function) && is(known.what, details.what) &&
             is(known.place, details.place) && known.rank == details.rank &&
             known.ranks == details.ranks;
    });
    if (row.calls++) return;
    row.first = now;
    if (&row == &facts.beyond) return;
    put(row.function, details.function);
    put(row.what, details.what);
    put(row.place, details.place);
    row.rank = details.rank;
    row.ranks = details.ranks;
    fresh = row;
  }
  const auto list = list_of(kind);
  if (list == FactList::unmodelled) return;
  std::fprintf(stderr, "peakbench emulator: %s%s\n", text_of(kind, fresh).c_str(),
               list == FactList::refused ? " is not emulated; it was refused" : "");
}

void refuse(const char* name) { enter(Fact::refused_call, {.function = name}); }

namespace {

void enter_workspace(Workspace kind, const char* function, const WorkspaceRange& range) {
  const int device = current_device();
  std::uint64_t allocated = 0;
  const bool counted = allocated_now(device, allocated);
  const Caller& caller = find_caller();
  LedgerWorkspaces& workspaces = ledger().workspaces;
  std::lock_guard lock(rows_mutex);
  auto& row = row_in(workspaces, [&](const LedgerWorkspace& known) {
    return known.kind == kind && known.device == static_cast<std::uint32_t>(device) &&
           is(known.function, function);
  });
  const bool beyond = &row == &workspaces.beyond;
  if (!row.calls && !beyond) {
    row.kind = kind;
    row.device = static_cast<std::uint32_t>(device);
    put(row.function, function);
  }
  const bool first = row.calls++ == 0;
  row.uncounted_calls += !counted || beyond;
  row.highest_bytes = std::max(row.highest_bytes, allocated + range.most_bytes - range.bytes);
  row.largest_excess_bytes = std::max(row.largest_excess_bytes, range.bytes - range.least_bytes);
  row.largest_most_bytes = std::max(row.largest_most_bytes, range.most_bytes);
  if (!first && allocated <= row.largest_allocated_bytes) return;
  row.largest_allocated_bytes = allocated;
  put(row.operation, caller.operation);
}

}  // namespace

void missing_workspace(Workspace kind, const char* function) {
  enter_workspace(kind, function, {});
}

void convolution_workspace(const WorkspaceRange& range) {
  const bool is_measured = range.least_bytes == range.most_bytes;
  enter_workspace(is_measured ? Workspace::cudnn_measured : Workspace::cudnn_estimated, "", range);
}

}  // namespace peakbench::emulator

extern "C" void peakbench_emulator_refuse(const char* name) { peakbench::emulator::refuse(name); }

extern "C" void peakbench_emulator_no_workspace(const char* function) {
  using namespace peakbench::emulator;
  missing_workspace(Workspace::answered, function);
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

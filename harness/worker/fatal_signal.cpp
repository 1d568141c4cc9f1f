#include "worker/fatal_signal.h"

#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

#include "trace/lifetimes.h"
#include "trace/trace.h"
#include "worker/plugin_call.h"
#include "worker/progress.h"

namespace peakbench::worker {
namespace {

struct Mapped {
  const std::byte* data = nullptr;
  std::size_t size = 0;

  // Null where that reaches beyond the file.
  template <typename Item>
  const Item* at(std::uint64_t offset, std::uint64_t count) const {
    if (offset > size || count > (size - offset) / sizeof(Item)) return nullptr;
    return reinterpret_cast<const Item*>(data + offset);
  }
};

Mapped map(const char* path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  struct stat facts {};
  if (file < 0 || ::fstat(file, &facts) != 0 || facts.st_size <= 0) return {};
  const auto size = static_cast<std::size_t>(facts.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  ::close(file);
  return data == MAP_FAILED ? Mapped{} : Mapped{static_cast<const std::byte*>(data), size};
}

bool covers(const Elf64_Sym& symbol, std::uintptr_t offset) {
  return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value <= offset &&
         offset - symbol.st_value < symbol.st_size;
}

const char* name_in(const Mapped& file, const Elf64_Shdr& names, std::uint64_t at) {
  if (at >= names.sh_size) return nullptr;
  const char* name = file.at<char>(names.sh_offset + at, names.sh_size - at);
  // A table ends with a zero; one that does not is no table.
  return name != nullptr && name[names.sh_size - at - 1] == '\0' ? name : nullptr;
}

const char* in_table(const Mapped& file, const Elf64_Shdr& table, const Elf64_Shdr& names,
                     std::uintptr_t offset) {
  const auto count = table.sh_size / sizeof(Elf64_Sym);
  const auto* symbols = file.at<Elf64_Sym>(table.sh_offset, count);
  for (std::uint64_t i = 0; symbols != nullptr && i < count; ++i)
    if (covers(symbols[i], offset)) return name_in(file, names, symbols[i].st_name);
  return nullptr;
}

// A function's name from a library's own table of symbols, which has those that are not exported: a
// plugin exports its entry alone. Mangled; null where the file has no such table (stripped) or no
// function there. `offset`: from where the library is loaded. Allocates nothing and takes no lock,
// for a signal handler; leaves the file mapped, as the process ends.
const char* symbol_of(const char* path, std::uintptr_t offset) {
  const Mapped file = map(path);
  const auto* header = file.at<Elf64_Ehdr>(0, 1);
  if (header == nullptr || header->e_shentsize != sizeof(Elf64_Shdr)) return nullptr;
  const auto* sections = file.at<Elf64_Shdr>(header->e_shoff, header->e_shnum);
  for (unsigned i = 0; sections != nullptr && i < header->e_shnum; ++i)
    if (sections[i].sh_type == SHT_SYMTAB && sections[i].sh_link < header->e_shnum)
      return in_table(file, sections[i], sections[sections[i].sh_link], offset);
  return nullptr;
}

constexpr std::array kFatal{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int kMostFrames = 48, kToldFrames = 4;
constexpr std::size_t kMostLibraries = 256;
constexpr unsigned kPatienceSeconds = 5;  // with a lock that whoever failed may hold

// Strings that are never freed, to be read in the handler.
std::array<std::atomic<const char*>, kMostLibraries> plugin_libraries;
std::atomic<int> ended_by{0};
std::atomic<pid_t> teller{0};  // the thread that is in the handler

bool is_plugin(const char* library) {
  return library != nullptr && std::ranges::any_of(plugin_libraries, [&](const auto& one) {
           const char* path = one.load();
           return path != nullptr && ::strcmp(path, library) == 0;
         });
}

// Allocates nothing: the heap may be what is broken. What does not fit is left out.
class Line {
 public:
  void add(const char* text) { add(text, ::strlen(text)); }
  void add(const char* text, std::size_t count) {
    for (std::size_t i = 0; i < count && size_ < text_.size(); ++i) text_[size_++] = text[i];
  }
  void add_number(std::uint64_t number, unsigned base = 10) {
    std::array<char, 24> digits{};
    std::size_t at = digits.size();
    do digits[--at] = "0123456789abcdef"[number % base];
    while ((number /= base) != 0);
    add(digits.data() + at, digits.size() - at);
  }
  // As a JSON string; of a longer text its last characters.
  void add_string(const char* text, std::size_t most) {
    const std::size_t length = ::strlen(text);
    if (length > most) text += length - most;
    while ((*text & 0xC0) == 0x80) ++text;  // not from the middle of a character
    add("\"");
    for (; *text != '\0'; ++text) {
      if (*text == '"' || *text == '\\') add("\\");
      const bool control = static_cast<unsigned char>(*text) < ' ';
      add(control ? "?" : text, 1);
    }
    add("\"");
  }
  void write_to(int descriptor) const {
    pollfd room{descriptor, POLLOUT, 0};
    ::poll(&room, 1, static_cast<int>(kPatienceSeconds) * 100);
    [[maybe_unused]] const auto written = ::write(descriptor, text_.data(), size_);
  }

 private:
  std::array<char, 4096> text_;  // what a pipe takes whole
  std::size_t size_ = 0;
};

struct Frame {
  const char* library = "";
  const char* file = "";  // its name without folders
  const char* function = nullptr;
  std::uintptr_t offset = 0;
  bool in_plugin = false;
};

Frame frame_at(void* address) {
  Frame frame;
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return frame;
  frame.library = info.dli_fname;
  const char* slash = ::strrchr(info.dli_fname, '/');
  frame.file = slash == nullptr ? info.dli_fname : slash + 1;
  frame.offset =
      reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  frame.in_plugin = is_plugin(info.dli_fname);
  frame.function = info.dli_sname;
  // An address that is returned to may lie behind its function.
  if (frame.in_plugin && frame.function == nullptr && frame.offset > 0)
    frame.function = symbol_of(info.dli_fname, frame.offset - 1);
  return frame;
}

// "sgd.so+0x12ab _ZN3Sgd6updateEv".
void add_frame(Line& line, const Frame& frame, bool quoted) {
  const auto put = [&](const char* text, std::size_t most) {
    line.add(text, std::min(most, ::strlen(text)));
  };
  if (quoted) line.add("\"");
  put(frame.file, 100);
  line.add("+0x");
  line.add_number(frame.offset, 16);
  if (frame.function != nullptr) {
    line.add(" ");
    put(frame.function, 400);
  }
  if (quoted) line.add("\"");
}

struct Backtrace {
  std::array<Frame, kMostFrames> frames;
  int count = 0, begin = 0;  // begin: where it was, as far as can be told
  const Frame* in_plugin = nullptr;
};

// From where the signal came; the frames before that are the handler's. Where it was raised, the
// first are libc's: the plugin's own is looked for.
void take(Backtrace& trace, const void* from) {
  std::array<void*, kMostFrames> addresses{};
  const int found = ::backtrace(addresses.data(), kMostFrames);
  auto* const end = addresses.data() + found;
  auto* const first = std::find(addresses.data(), end, from);
  for (auto* one = first == end ? addresses.data() : first; one != end; ++one)
    trace.frames[trace.count++] = frame_at(*one);
  for (int i = 0; i < trace.count && trace.in_plugin == nullptr; ++i)
    if (trace.frames[i].in_plugin) trace.in_plugin = &trace.frames[trace.begin = i];
}

void add_place(Line& line) {
  const Place place = place_now();
  if (place.step == trace::kNone) return;
  line.add("step ");
  line.add_number(static_cast<std::uint64_t>(place.step) + 1);
  line.add(" of ");
  line.add_number(static_cast<std::uint64_t>(place.steps));
  line.add(", ");
  line.add(trace::to_string(place.phase));
}

const char* path_of(const Call& call, const Backtrace& trace) {
  if (call.owner != nullptr) return call.owner->path.c_str();
  return trace.in_plugin != nullptr ? trace.in_plugin->library : "";
}

void tell_launcher(const Call& call, const Backtrace& trace) {
  const int descriptor = progress_descriptor();
  if (descriptor < 0) return;
  Line line;
  line.add("{\"crash\": {\"path\": ");
  line.add_string(path_of(call, trace), 1000);
  line.add(", \"plugin\": ");
  line.add_string(call.owner == nullptr ? "" : call.owner->id.c_str(), 200);
  line.add(", \"call\": ");
  line.add_string(call.name, 100);
  line.add(", \"place\": \"");
  add_place(line);
  line.add("\", \"frames\": [");
  // Of a plugin its own functions, as far as they call each other.
  for (int i = 0; i < std::min(kToldFrames, trace.count - trace.begin); ++i) {
    const Frame& frame = trace.frames[trace.begin + i];
    if (trace.in_plugin != nullptr && !frame.in_plugin) break;
    if (i > 0) line.add(", ");
    add_frame(line, frame, true);
  }
  line.add("]}}\n");
  line.write_to(descriptor);
}

void tell_log(int number, const void* address, const Call& call, const Backtrace& trace) {
  Line line;
  line.add("\npeakbench-worker: ended by SIG");
  line.add(sigabbrev_np(number));
  if (number == SIGSEGV || number == SIGBUS) {
    line.add(" at address 0x");
    line.add_number(reinterpret_cast<std::uintptr_t>(address), 16);
  }
  if (*path_of(call, trace) != '\0') {
    line.add(" in ");
    line.add(path_of(call, trace));
  }
  if (call.owner != nullptr) {
    line.add(": ");
    line.add(call.owner->id.c_str());
    line.add(", in ");
    line.add(call.name);
  }
  line.add(
      "\nBacktrace, the innermost first (c++filt reads the names, addr2line -e the offsets):\n");
  line.write_to(STDERR_FILENO);
  for (int i = 0; i < trace.count; ++i) {
    Line one;
    one.add("  ");
    add_frame(one, trace.frames[i], false);
    one.add("\n");
    one.write_to(STDERR_FILENO);
  }
}

[[noreturn]] void end_by(int number) {
  ::signal(number, SIG_DFL);
  ::raise(number);
  ::_exit(128 + number);
}

void give_up(int) { end_by(ended_by); }

void on_fatal(int number, siginfo_t* info, void* context) {
  pid_t nobody = 0;
  if (!teller.compare_exchange_strong(nobody, ::gettid())) {
    while (teller != ::gettid()) ::pause();  // another thread tells, and ends us
    end_by(number);                          // it happened in here
  }
  ended_by = number;
  ::signal(SIGALRM, give_up);
  ::alarm(kPatienceSeconds);
  static Backtrace trace;  // the stack may be short
  const Call call = current_call();
  tell_launcher(call, trace);  // what needs no backtrace; once more with it
  const auto& at = static_cast<const ucontext_t*>(context)->uc_mcontext;
  take(trace, reinterpret_cast<const void*>(at.gregs[REG_RIP]));
  tell_launcher(call, trace);
  tell_log(number, info->si_addr, call, trace);
  end_by(number);
}

}  // namespace

void prepare_for_fatal_signals() {
  progress_descriptor();
  void* once = nullptr;
  ::backtrace(&once, 1);  // the first call loads a library
  static std::array<std::byte, 65536> stack;
  const stack_t own{stack.data(), 0, stack.size()};
  ::sigaltstack(&own, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fatal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (const int number : kFatal) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler == SIG_DFL) ::sigaction(number, &action, nullptr);
  }
}

void note_plugin_library(const std::string& path) {
  for (auto& one : plugin_libraries) {
    const char* held = one.load();
    if (held != nullptr && path == held) return;
    if (held != nullptr) continue;
    one = ::strdup(path.c_str());
    return;
  }
}

}  // namespace peakbench::worker

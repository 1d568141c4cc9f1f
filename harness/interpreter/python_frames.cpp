#include "interpreter/python_frames.h"

#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "interpreter/python_api.h"

namespace peakbench::interpreter {
namespace {

// Where a version keeps what is looked for, in bytes from the start of each structure.
struct Layout {
  int minor;                    // 3.minor
  std::size_t thread_to_frame;  // of the thread's state: the frame, or what points to it
  std::optional<std::size_t> through;
  std::size_t code, previous, instruction, owner;
  int outside;  // from this owner on it is no Python function's
};
constexpr Layout kLayouts[] = {
    {11, 56, 8, 32, 48, 56, 69, 3},
    {12, 56, 0, 0, 8, 56, 70, 3},
    {13, 72, std::nullopt, 0, 8, 56, 70, 3},
    {14, 64, std::nullopt, 0, 8, 56, 74, 3},
};

// Memory that may not be there.
template <typename Value>
std::optional<Value> read(const char* at) {
  Value value;
  const iovec here{&value, sizeof value};
  const iovec there{const_cast<char*>(at), sizeof value};
  if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != sizeof value) return std::nullopt;
  return value;
}

// What is known to be there.
struct Trusting {
  template <typename Value>
  static std::optional<Value> read(const char* at) {
    return *reinterpret_cast<const Value*>(at);
  }
};
struct Doubting {
  template <typename Value>
  static std::optional<Value> read(const char* at) {
    return interpreter::read<Value>(at);
  }
};

char* untagged(char* object) {  // 3.14 marks references in their lowest bits
  return reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(object) & ~std::uintptr_t{3});
}

struct RawFrame {
  char* code;
  char* instruction;
};

template <typename Memory, typename Visit>
bool walk(const Layout& layout, char* thread, const Visit& visit) {
  auto frame = Memory::template read<char*>(thread + layout.thread_to_frame);
  if (frame && *frame && layout.through)
    frame = Memory::template read<char*>(*frame + *layout.through);
  while (frame && *frame) {
    const auto owner = Memory::template read<char>(*frame + layout.owner);
    const auto code = Memory::template read<char*>(*frame + layout.code);
    const auto instruction = Memory::template read<char*>(*frame + layout.instruction);
    if (!owner || !code || !instruction) return false;
    if (*owner < layout.outside && !visit(RawFrame{untagged(*code), *instruction})) return true;
    frame = Memory::template read<char*>(*frame + layout.previous);
  }
  return frame.has_value();
}

struct Direct {
  const Layout* layout;
  std::ptrdiff_t code_to_instructions;
};

std::optional<RawFrame> innermost(const Layout& layout, char* thread) {
  std::optional<RawFrame> found;
  bool is_code = true;
  const bool whole = walk<Doubting>(layout, thread, [&](const RawFrame& frame) {
    if (!found) found = frame;
    const auto type = read<void*>(frame.code + sizeof(void*));
    is_code = is_code && type && *type == python().code_type;
    return is_code;
  });
  return whole && is_code ? found : std::nullopt;
}

int minor_version() {
  const auto version = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "Py_GetVersion"));
  int minor = 0;
  for (const char* digit = version ? version() + 2 : ""; *digit >= '0' && *digit <= '9'; ++digit)
    minor = minor * 10 + (*digit - '0');
  return minor;
}

std::optional<Direct> compare_once() {
  const Python& p = python();
  if (!p.instruction || !p.line_at || !p.code_type) return std::nullopt;
  const auto* layout = std::ranges::find(kLayouts, minor_version(), &Layout::minor);
  if (layout == std::end(kLayouts)) return std::nullopt;
  auto* const thread = static_cast<char*>(p.thread());
  const auto raw = innermost(*layout, thread);
  const Owned frame(p.thread_frame(thread));
  if (!raw || !frame) return std::nullopt;
  const Owned code(p.code(frame.get()));
  const int at = p.instruction(frame.get());
  const bool same = code.get() == raw->code && p.line_at(raw->code, at) == p.line(frame.get());
  if (!same) return std::nullopt;
  return Direct{layout, raw->instruction - raw->code - at};
}

const std::optional<Direct>& direct() {
  static const auto found = compare_once();
  return found;
}

std::size_t frame_objects(PythonFrame* out, std::size_t most) {
  const Python& p = python();
  std::size_t count = 0;
  void* frame = p.thread_frame(p.thread());
  while (frame != nullptr) {
    if (count < most) {
      void* const code = p.code(frame);
      out[count++] = {code, p.instruction ? p.instruction(frame) : p.line(frame)};
      p.drop(code);
    }
    void* const outer = p.back(frame);
    p.drop(frame);
    frame = outer;
  }
  return count;
}

}  // namespace

std::size_t python_frames(PythonFrame* out, std::size_t most) {
  if (!direct()) return frame_objects(out, most);
  std::size_t count = 0;
  walk<Trusting>(*direct()->layout, static_cast<char*>(python().thread()),
                 [&](const RawFrame& frame) {
                   if (count == most) return false;
                   const auto at = frame.instruction - frame.code - direct()->code_to_instructions;
                   out[count++] = {frame.code, static_cast<int>(at)};
                   return true;
                 });
  return count;
}

int line_of(const PythonFrame& frame) {
  const Python& p = python();
  return p.instruction && p.line_at ? p.line_at(frame.code, frame.at) : frame.at;
}

namespace {

// A module that was imported; borrowed.
void* module_named(const char* name) {
  const Python& p = python();
  void* const modules = p.of_system ? p.of_system("modules") : nullptr;
  return modules && is_a(modules, p.dict_type) ? p.dict_item(modules, name) : nullptr;
}

// Borrowed.
void* in_dict(void* dict, void* key) {
  const Python& p = python();
  return dict && p.dict_at && is_a(dict, p.dict_type) ? p.dict_at(dict, key) : nullptr;
}

}  // namespace

std::string cell_of(void* file) {
  void* const module = module_named("IPython.core.interactiveshell");
  if (!module) return "";
  const auto shells = attribute(module, "InteractiveShell");
  if (!shells) return "";
  const auto shell = attribute(shells.get(), "_instance");
  if (!shell) return "";
  const auto compiler = attribute(shell.get(), "compile");
  if (!compiler) return "";
  const auto numbers = attribute(compiler.get(), "_filename_map");
  void* const number = in_dict(numbers.get(), file);
  return number ? "<ipython-input-" + std::to_string(python().number(number)) + ">" : "";
}

}  // namespace peakbench::interpreter

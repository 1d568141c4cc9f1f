#include "core/callers.h"

#include <cxxabi.h>
#include <execinfo.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/symbols.h"
#include "interpreter/python_api.h"
#include "interpreter/python_frames.h"
#include "number_use.h"  // made from number_use.py

namespace peakbench::emulator {
namespace {

constexpr int kDepth = 64;

std::string folder_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash ? std::string(path, slash) : std::string();
}

std::string demangle(const char* symbol) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  return status == 0 && name ? name.get() : symbol;
}

// "void at::native::(anonymous namespace)::copy<float>(at::Tensor const&)" ->
// "at::native::(anonymous namespace)::copy".
std::string without_arguments(const std::string& name) {
  static const std::string kAnonymous = "(anonymous namespace)";
  std::string out;
  int angles = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (angles == 0 && name.compare(i, kAnonymous.size(), kAnonymous) == 0) {
      out += kAnonymous;
      i += kAnonymous.size() - 1;
      continue;
    }
    const char c = name[i];
    if (c == '<') ++angles;
    if (angles == 0) {
      if (c == '(') break;
      if (c == ' ') {
        out.clear();  // what came before was the return type
      } else {
        out += c;
      }
    }
    if (c == '>' && angles > 0) --angles;
  }
  return out.empty() ? name : out;
}

// "at::_ops::_local_scalar_dense::call" -> "aten::_local_scalar_dense".
std::string operator_of(const std::string& function) {
  static const std::string kPrefix = "at::_ops::";
  if (function.compare(0, kPrefix.size(), kPrefix) != 0) return "";
  const auto end = function.find("::", kPrefix.size());
  return end == std::string::npos
             ? ""
             : "aten::" + function.substr(kPrefix.size(), end - kPrefix.size());
}

// Ways down to a copy that say nothing of who wanted it.
bool is_plumbing(const std::string& function) {
  for (const char* prefix : {"c10::", "at::cuda::", "cuda", "cu", "_"}) {
    if (function.compare(0, std::strlen(prefix), prefix) == 0) return true;
  }
  return false;
}

template <std::size_t size>
void put(char (&to)[size], const std::string& from) {
  std::snprintf(to, size, "%s", from.c_str());
}

// What a return address lies in.
struct Frame {
  std::string library;    // empty where nothing is known of it, or it is of the stand-ins
  std::string function;   // empty where it has no name
  std::string operation;  // empty where the function is no operator's
};

Frame frame_in(const std::string& library, const std::string& symbol) {
  static const auto* const stand_ins = new std::string(
      folder_name(symbols_at(reinterpret_cast<const void*>(&find_caller), {}).path.c_str()));
  if (library.empty() || folder_name(library.c_str()) == *stand_ins) return {};
  Frame frame{.library = ::basename(library.c_str()), .function = "", .operation = ""};
  if (symbol.empty()) return frame;
  frame.function = without_arguments(demangle(symbol.c_str()));
  frame.operation = operator_of(frame.function);
  return frame;
}

// A return address may be the first byte of the next function: the call itself lies before.
const void* call_before(const void* address) { return static_cast<const char*>(address) - 1; }

// The frames of a stack by their addresses. Most stacks have their innermost ones in common; those
// of one library are named together.
class Frames {
 public:
  const Frame& at(void* address, const std::vector<void*>& stack) {
    if (!frames_.contains(call_before(address))) name_library_of(address, stack);
    return frames_.at(call_before(address));
  }

 private:
  void name_library_of(void* address, const std::vector<void*>& stack) {
    std::vector<const void*> calls;
    for (void* one : stack)
      if (!frames_.contains(call_before(one))) calls.push_back(call_before(one));
    auto found = symbols_at(call_before(address), calls);
    found.functions.try_emplace(call_before(address));  // where it lies in no library
    for (const auto& [call, symbol] : found.functions)
      frames_.try_emplace(call, frame_in(found.path, symbol));
  }

  std::map<const void*, Frame> frames_;
};

// With find_caller's lock. What is static here and there is never destroyed: the process's own
// destructors may call CUDA.
Caller describe(const std::vector<void*>& stack) {
  static auto* const frames = new Frames;
  Caller caller;
  std::string fallback_function, fallback_library;
  for (void* address : stack) {
    const Frame& frame = frames->at(address, stack);
    if (fallback_library.empty()) fallback_library = frame.library;
    if (frame.function.empty()) continue;
    if (fallback_function.empty()) fallback_function = frame.function;
    if (!frame.operation.empty()) {
      put(caller.operation, frame.operation);
      break;
    }
    if (!caller.function[0] && !is_plumbing(frame.function)) {
      put(caller.function, frame.function);
      put(caller.library, frame.library);
    }
  }
  if (!caller.function[0])
    put(caller.function, fallback_function.empty() ? "unknown" : fallback_function);
  if (!caller.library[0]) put(caller.library, fallback_library);
  return caller;
}

}  // namespace

const Caller& find_caller() {
  static std::mutex mutex;
  static auto* const seen = new std::map<std::vector<void*>, Caller>;
  void* frames[kDepth];
  const int depth = backtrace(frames, kDepth);
  const std::vector<void*> stack(frames, frames + depth);
  std::lock_guard lock(mutex);
  auto [entry, fresh] = seen->try_emplace(stack);
  if (fresh) entry->second = describe(stack);
  return entry->second;
}

namespace {

using interpreter::Owned;
using interpreter::PythonFrame;

bool is_of_pytorch(const char* file) {
  return std::strstr(file, "/site-packages/torch/") || std::strstr(file, "/dist-packages/torch/") ||
         std::strstr(file, "/lib/peakbench/") || file[0] == '<';
}

// Line, last line, column, last column.
using Position = std::array<long, 4>;

// What messages call the file: train.py, In[3].
std::string name_of(const std::string& file, const std::string& cell) {
  constexpr std::string_view kCell = "<ipython-input-";
  if (cell.starts_with(kCell))
    return "In[" + cell.substr(kCell.size(), cell.size() - kCell.size() - 1) + "]";
  const auto slash = file.rfind('/');
  return slash == std::string::npos ? file : file.substr(slash + 1);
}

// Of the expression that the frame evaluates. An instruction takes two bytes.
std::optional<Position> position_of(const PythonFrame& frame) {
  const auto& p = interpreter::python();
  const auto positions_of = interpreter::attribute(frame.code, "co_positions");
  const Owned positions(positions_of ? p.call_with(positions_of.get(), nullptr) : nullptr);
  for (int left = positions ? frame.at / 2 : -1; left >= 0; --left) {
    const Owned position(p.next(positions.get()));
    if (!position) break;
    if (left > 0) continue;
    Position found;
    for (std::size_t i = 0; i < found.size(); ++i)
      found[i] =
          static_cast<long>(p.number(p.tuple_item(position.get(), static_cast<std::ptrdiff_t>(i))));
    p.clear_error();  // None is no number: -1
    return found;
  }
  return std::nullopt;
}

// By number_use.py, which is gone from the interpreter afterwards.
PythonUse use_of_expression(const char* file, const Position& at) {
  constexpr int kFileInput = 257;  // Py_file_input
  constexpr unsigned long long kAllFlags = 7;
  const auto& p = interpreter::python();
  const Owned names(p.new_dict());
  const Owned code(p.compile(kNumberUse, "<peakbench>", kFileInput));
  const Owned done(code ? p.evaluate(code.get(), names.get(), names.get()) : nullptr);
  void* const function = done ? p.dict_item(names.get(), "number_use") : nullptr;
  const Owned answer(function ? p.call_format(function, "sllll", file, at[0], at[1], at[2], at[3])
                              : nullptr);
  const auto told = answer ? p.number(answer.get()) : 0;
  const auto flags = told <= kAllFlags ? told : 0;  // more: it is no number
  p.clear_dict(names.get());                        // its functions hold it
  p.clear_error();
  return {.makes_integer = (flags & 1) != 0,
          .only_logged = (flags & 2) != 0,
          .only_printed = (flags & 4) != 0};
}

// While it lives Python evaluates frames itself: torch.compile would compile those of ours.
class PlainEvaluation {
 public:
  PlainEvaluation()
      : interpreter_(interpreter::python().interpreter()),
        before_(interpreter::python().evaluator(interpreter_)) {
    interpreter::python().set_evaluator(interpreter_, interpreter::python().plain_evaluator);
  }
  PlainEvaluation(const PlainEvaluation&) = delete;
  PlainEvaluation& operator=(const PlainEvaluation&) = delete;
  ~PlainEvaluation() { interpreter::python().set_evaluator(interpreter_, before_); }

 private:
  void* interpreter_;
  void* before_;
};

PythonUse find_use(const PythonFrame& frame, const char* file) {
  if (!interpreter::python().knows_columns()) return {};
  const PlainEvaluation plain;
  const interpreter::CollectorHeld held;
  const auto at = position_of(frame);
  return at ? use_of_expression(file, *at) : PythonUse{};
}

// A loop reads at the same place again and again.
PythonUse use_of(const PythonFrame& frame, const char* file) {
  static std::mutex mutex;  // never held while the interpreter may run something
  static auto* const seen = new std::map<std::string, PythonUse>;
  const std::string key = std::string(file) + ":" + std::to_string(interpreter::line_of(frame)) +
                          ":" + std::to_string(frame.at);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = seen->find(key); found != seen->end()) return found->second;
  }
  const auto use = find_use(frame, file);
  const std::lock_guard lock(mutex);
  return (*seen)[key] = use;
}

// Writes the frame's place; whether it is the program's own.
bool describe(const PythonFrame& frame, char* out, std::size_t size, PythonUse* use) {
  const auto name = interpreter::attribute(frame.code, "co_filename");
  const auto file = interpreter::utf8_of(name.get(), "");
  if (file.empty()) return false;
  const auto cell = interpreter::cell_of(name.get());
  std::snprintf(out, size, "%s:%d", name_of(file, cell).c_str(), interpreter::line_of(frame));
  const bool own = !cell.empty() || !is_of_pytorch(file.c_str());
  if (own && use) *use = use_of(frame, file.c_str());
  return own;
}

void walk(char* out, std::size_t size, PythonUse* use) {
  constexpr std::size_t kDeepest = 1024;
  static thread_local std::array<PythonFrame, kDeepest> frames;
  const auto count = interpreter::python_frames(frames.data(), frames.size());
  for (std::size_t i = 0; i < count; ++i)
    if (describe(frames[i], out, size, use)) break;
}

}  // namespace

void find_python_place(char* out, std::size_t size, PythonUse* use) {
  out[0] = '\0';
  const auto& p = interpreter::python();
  if (!p.knows_frames() || !p.is_initialized() || interpreter::python_is_ending()) return;
  const int held = p.ensure();
  walk(out, size, use);
  p.release(held);
}

}  // namespace peakbench::emulator

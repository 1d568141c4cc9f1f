#include "core/callers.h"

#include <cxxabi.h>
#include <execinfo.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/symbols.h"

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

}  // namespace peakbench::emulator

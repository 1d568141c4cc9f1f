#include "core/callers.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace peakbench::emulator {
namespace {

constexpr int kDepth = 64;

std::string base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

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

Frame find_frame(void* address) {
  Dl_info own{}, info{};
  // A return address may be the first byte of the next function: look at the call itself.
  if (!dladdr(static_cast<char*>(address) - 1, &info) || !info.dli_fname) return {};
  dladdr(reinterpret_cast<void*>(&find_caller), &own);
  const std::string stand_ins = folder_name(own.dli_fname ? own.dli_fname : "");
  if (folder_name(info.dli_fname) == stand_ins) return {};
  Frame frame{.library = base_name(info.dli_fname), .function = "", .operation = ""};
  if (info.dli_sname) {
    frame.function = without_arguments(demangle(info.dli_sname));
    frame.operation = operator_of(frame.function);
  }
  return frame;
}

// Most stacks have their innermost frames in common, and the name of each takes half a millisecond
// in a library of LibTorch's size. With find_caller's lock.
const Frame& frame_of(void* address) {
  static auto* const seen = new std::map<void*, Frame>;  // outlives the process's own destructors
  auto [entry, fresh] = seen->try_emplace(address);
  if (fresh) entry->second = find_frame(address);
  return entry->second;
}

Caller describe(void* const* frames, int depth) {
  Caller caller;
  std::string fallback_function, fallback_library;
  for (int i = 0; i < depth; ++i) {
    const Frame& frame = frame_of(frames[i]);
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
  static auto* const seen =
      new std::map<std::vector<void*>, Caller>;  // outlives the process's own destructors
  void* frames[kDepth];
  const int depth = backtrace(frames, kDepth);
  std::vector<void*> key(frames, frames + depth);
  std::lock_guard lock(mutex);
  auto [entry, fresh] = seen->try_emplace(std::move(key));
  if (fresh) entry->second = describe(frames, depth);
  return entry->second;
}

}  // namespace peakbench::emulator

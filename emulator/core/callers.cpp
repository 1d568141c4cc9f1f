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

Caller describe(void* const* frames, int depth) {
  Dl_info own{};
  dladdr(reinterpret_cast<void*>(&find_caller), &own);
  const std::string stand_ins = folder_name(own.dli_fname ? own.dli_fname : "");
  Caller caller;
  std::string fallback_function, fallback_library;
  for (int i = 0; i < depth; ++i) {
    Dl_info info{};
    // A return address may be the first byte of the next function: look at the call itself.
    if (!dladdr(static_cast<char*>(frames[i]) - 1, &info) || !info.dli_fname) continue;
    if (folder_name(info.dli_fname) == stand_ins) continue;
    const std::string library = base_name(info.dli_fname);
    if (fallback_library.empty()) fallback_library = library;
    if (!info.dli_sname) continue;
    const std::string function = without_arguments(demangle(info.dli_sname));
    if (fallback_function.empty()) fallback_function = function;
    const std::string operation = operator_of(function);
    if (!operation.empty()) {
      put(caller.operation, operation);
      break;
    }
    if (!caller.function[0] && !is_plumbing(function)) {
      put(caller.function, function);
      put(caller.library, library);
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

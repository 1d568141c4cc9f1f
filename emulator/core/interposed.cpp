#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/card.h"
#include "interpreter/python_api.h"

namespace peakbench::emulator::children {
// Programs that this process starts with an environment of their own. A real card is there for them
// whatever their environment says; the emulated one is found by it, so what the launcher set is put
// back. A program that sets the card's variable itself, to nothing even, is left alone.
//
// All of it may run in a child between vfork and exec: it allocates nothing, and takes no lock.

namespace {

constexpr std::string_view kPrefixes[] = {"PEAKBENCH_EMULAT", "PEAKBENCH_TRACE_",
                                          "TRITON_LIBCUDA_PATH="};
// Lists, of which the child keeps its own behind the launcher's part.
constexpr std::string_view kPreload = "LD_PRELOAD=", kPath = "PATH=", kPython = "PYTHONPATH=";

bool is_of(const char* variable, std::string_view name) {
  return std::strncmp(variable, name.data(), name.size()) == 0;
}

bool is_launchers(const char* variable) {
  for (const auto prefix : kPrefixes)
    if (is_of(variable, prefix)) return true;
  return false;
}

std::string first_of(const char* list) {
  return list ? std::string(list, std::strcspn(list, ":")) : std::string();
}

// A list's beginning, as "NAME=beginning".
struct Beginning {
  std::string_view name;
  std::string text;
};

// What the launcher gave this process.
struct Given {
  std::vector<std::string> variables;
  std::vector<Beginning> beginnings;
};
const Given* given = nullptr;

__attribute__((constructor)) void remember() {
  const char* card = std::getenv(kCardVariable);
  if (!card || !*card) return;
  auto* const found = new Given;
  for (char** variable = environ; *variable; ++variable)
    if (is_launchers(*variable)) found->variables.emplace_back(*variable);
  const char* preload = std::getenv("LD_PRELOAD");
  const std::pair<std::string_view, std::string> lists[] = {
      {kPreload, preload ? preload : ""},
      {kPath, first_of(std::getenv("PATH"))},
      {kPython, first_of(std::getenv("PYTHONPATH"))}};
  for (const auto& [name, beginning] : lists)
    if (!beginning.empty()) found->beginnings.push_back({name, std::string(name) + beginning});
  given = found;
}

bool is_left_alone(char* const* environment) {
  if (!given) return true;
  const std::size_t length = std::strlen(kCardVariable);
  for (; environment && *environment; ++environment)
    if (std::strncmp(*environment, kCardVariable, length) == 0 && (*environment)[length] == '=')
      return true;
  return false;
}

const Beginning* beginning_of(const char* variable) {
  for (const Beginning& one : given->beginnings)
    if (is_of(variable, one.name)) return &one;
  return nullptr;
}

// How much complete() needs: pointers, and bytes of text.
struct Room {
  std::size_t pointers = 1, bytes = 1;
};

Room room_for(char* const* environment) {
  Room room;
  room.pointers += given->variables.size() + given->beginnings.size();
  for (; environment && *environment; ++environment, ++room.pointers)
    if (const Beginning* begins = beginning_of(*environment))
      room.bytes += begins->text.size() + std::strlen(*environment) + 2;
  return room;
}

// "NAME=beginning:own"; what begins so already stays as it is.
char* joined(const Beginning& begins, char* variable, char*& text) {
  if (is_of(variable, begins.text)) return variable;
  const char* own = variable + begins.name.size();
  char* const made = text;
  text = stpcpy(text, begins.text.c_str());
  if (*own) text = stpcpy(stpcpy(text, ":"), own);
  ++text;  // past its end
  return made;
}

void complete(char* const* environment, char** out, char* text) {
  char** const first = out;
  for (; environment && *environment; ++environment) {
    if (is_launchers(*environment)) continue;
    const Beginning* const begins = beginning_of(*environment);
    *out++ = begins ? joined(*begins, *environment, text) : *environment;
  }
  *out = nullptr;
  char** const own_end = out;
  for (const Beginning& one : given->beginnings) {
    bool there = false;
    for (char** variable = first; variable != own_end; ++variable)
      there |= is_of(*variable, one.name);
    if (!there) *out++ = const_cast<char*>(one.text.c_str());
  }
  for (const std::string& one : given->variables) *out++ = const_cast<char*>(one.c_str());
  *out = nullptr;
}

// Calls it with what the child's environment has to be, behind the other arguments.
template <typename Function, typename... Others>
int with_card(char* const* environment, Function real, Others... others) {
  if (is_left_alone(environment)) return real(others..., environment);
  const Room room = room_for(environment);
  auto** const out = static_cast<char**>(alloca(room.pointers * sizeof(char*)));
  complete(environment, out, static_cast<char*>(alloca(room.bytes)));
  return real(others..., out);
}

// Looked up beforehand: the loader takes a lock.
template <typename Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
const auto real_execve = next(&execve, "execve");
const auto real_execvpe = next(&execvpe, "execvpe");
const auto real_fexecve = next(&fexecve, "fexecve");
const auto real_posix_spawn = next(&posix_spawn, "posix_spawn");
const auto real_posix_spawnp = next(&posix_spawnp, "posix_spawnp");

std::size_t count_of(va_list arguments) {
  std::size_t count = 1;
  while (va_arg(arguments, char*)) ++count;
  return count;
}

}  // namespace

extern "C" {

int execve(const char* path, char* const* arguments, char* const* environment) {
  return with_card(environment, real_execve, path, arguments);
}
int execvpe(const char* file, char* const* arguments, char* const* environment) {
  return with_card(environment, real_execvpe, file, arguments);
}
int fexecve(int file, char* const* arguments, char* const* environment) {
  return with_card(environment, real_fexecve, file, arguments);
}
// These take the process's own, of which the program may have deleted something.
int execv(const char* path, char* const* arguments) { return execve(path, arguments, environ); }
int execvp(const char* file, char* const* arguments) { return execvpe(file, arguments, environ); }

int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* arguments,
                char* const* environment) {
  return with_card(environment, real_posix_spawn, pid, path, actions, attributes, arguments);
}
int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const* arguments,
                 char* const* environment) {
  return with_card(environment, real_posix_spawnp, pid, file, actions, attributes, arguments);
}

// The same with the arguments one by one; execle's environment comes behind them.
#define PEAKBENCH_ARGUMENTS(first)                                                   \
  va_list given_one_by_one;                                                          \
  va_start(given_one_by_one, first);                                                 \
  va_list to_count;                                                                  \
  va_copy(to_count, given_one_by_one);                                               \
  const std::size_t count = count_of(to_count);                                      \
  va_end(to_count);                                                                  \
  auto** const arguments = static_cast<char**>(alloca((count + 1) * sizeof(char*))); \
  arguments[0] = const_cast<char*>(first);                                           \
  for (std::size_t i = 1; i <= count; ++i) arguments[i] = va_arg(given_one_by_one, char*)

int execl(const char* path, const char* first, ...) {
  PEAKBENCH_ARGUMENTS(first);
  va_end(given_one_by_one);
  return execv(path, arguments);
}
int execlp(const char* file, const char* first, ...) {
  PEAKBENCH_ARGUMENTS(first);
  va_end(given_one_by_one);
  return execvp(file, arguments);
}
int execle(const char* path, const char* first, ...) {
  PEAKBENCH_ARGUMENTS(first);
  char* const* const environment = va_arg(given_one_by_one, char* const*);
  va_end(given_one_by_one);
  return execve(path, arguments, environment);
}

}  // extern "C"

}  // namespace peakbench::emulator::children

// Threads that want Python's lock when the interpreter is being taken down. CPython before 3.14
// ends them with pthread_exit, which unwinds through noexcept functions of LibTorch:
// std::terminate. The thread of autograd may come that late where the program ends with a backward;
// on the emulated card, whose kernels take no time, it does so more often than on a real one.
// From 3.14 on, CPython lets them sleep until the process has ended (PyThread_hang_thread); so does
// this, for all.

extern "C" void pthread_exit(void* value) {
  if (peakbench::interpreter::python_is_ending())
    for (;;) pause();
  static const auto real =
      reinterpret_cast<decltype(&pthread_exit)>(dlsym(RTLD_NEXT, "pthread_exit"));
  real(value);
  __builtin_unreachable();
}

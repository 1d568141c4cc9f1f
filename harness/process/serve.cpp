#include "process/serve.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "errors/host_limits.h"
#include "process/messages.h"
#include "process/supervisor.h"

namespace peakbench::process {
namespace {

// Threads are not forked, and what they held stays held.
int threads() {
  int count = 0;
  if (DIR* folder = opendir("/proc/self/task")) {
    while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.';
    closedir(folder);
  }
  return count;
}

std::string objection(const Service& service) {
  if (const int count = threads(); count != 1)
    return fmt::format("it has {} threads, and only the one that forks is forked", count);
  return service.objection();
}

// In the process of a run, in place of exec.
int run(const Service& service, const Request& request) {
  close_all_but({0, 1, 2, kProgressDescriptor});
  prctl(PR_SET_NAME, "peakbench-worker");
  for (const auto& [name, value] : request.spec.environment) setenv(name.c_str(), value.c_str(), 1);
  const int code = service.run(request.spec.arguments);
  std::fflush(nullptr);
  std::_Exit(code);
}

// What nobody knows of must not run: who asked may have asked another since.
void wait_for_go(int go) {
  close(kServerDescriptor);  // its end tells who asked that the server is gone
  char byte = 0;
  ssize_t count = 0;
  do {
    count = read(go, &byte, 1);
  } while (count < 0 && errno == EINTR);
  if (count != 1) _exit(0);
}

Reply start(const Service& service, const Request& request) {
  Reply reply;
  reply.refusal = objection(service);
  if (!reply.refusal.empty()) return reply;
  reply.supervisor = start_supervisor(
      request.spec, request.ends, kNobody, [&] { return run(service, request); },
      [&] { wait_for_go(request.go); });
  if (reply.supervisor < 0)
    reply.refusal = fmt::format("cannot start a process: {}", host_error_text(errno));
  return reply;
}

// Two forks for each run copy an entry for each page of the heap. LibTorch's takes 60 MiB: in huge
// pages that is thirty entries and not fifteen thousand, and what a run writes to is split for it.
// Linux 6.1 and later do it whatever is set for the system; elsewhere the pages stay as they are.
void put_heap_in_huge_pages() {
#ifdef MADV_COLLAPSE
  constexpr int kCollapse = MADV_COLLAPSE;
#else
  constexpr int kCollapse = 25;
#endif
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    void *begin = nullptr, *end = nullptr;
    if (!line.ends_with("[heap]") || std::sscanf(line.c_str(), "%p-%p", &begin, &end) != 2)
      continue;
    auto size = static_cast<std::size_t>(static_cast<char*>(end) - static_cast<char*>(begin));
    if (std::align(kHuge, kHuge, begin, size) != nullptr)
      madvise(begin, size / kHuge * kHuge, kCollapse);
  }
}

// Supervisors say themselves how it went; the time that they took counts as ours, and so as that of
// who started us.
void reap_workers() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

}  // namespace

void serve(const Service& service) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) signal(number, SIG_IGN);
  prctl(PR_SET_NAME, "peakbench-serve");
  unsetenv("LD_BIND_NOW");  // was for us (fork_server.cpp), and not for what runs start
  setenv("PEAKBENCH_PROGRESS_FD", std::to_string(kProgressDescriptor).c_str(), 1);
  fcntl(kServerDescriptor, F_SETFD, FD_CLOEXEC);
  if (!send_text(kServerDescriptor, kHello)) std::_Exit(0);
  constexpr int kFew = 2;  // runs, for which it would not pay
  for (int runs = 1; auto request = receive_request(kServerDescriptor); ++runs) {
    const auto reply = start(service, *request);
    for (const int* end : descriptors_of(*request)) close(*end);
    if (!send_reply(kServerDescriptor, reply)) break;
    reap_workers();
    if (runs == kFew) put_heap_in_huge_pages();
  }
  reap_workers();
  std::_Exit(0);
}

}  // namespace peakbench::process

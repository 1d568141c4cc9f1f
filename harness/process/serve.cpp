#include "process/serve.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

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
  setenv("PEAKBENCH_PROGRESS_FD", std::to_string(kProgressDescriptor).c_str(), 1);
  fcntl(kServerDescriptor, F_SETFD, FD_CLOEXEC);
  if (!send_text(kServerDescriptor, kHello)) std::_Exit(0);
  while (auto request = receive_request(kServerDescriptor)) {
    const auto reply = start(service, *request);
    for (const int* end : descriptors_of(*request)) close(*end);
    if (!send_reply(kServerDescriptor, reply)) break;
    reap_workers();
  }
  reap_workers();
  std::_Exit(0);
}

}  // namespace peakbench::process

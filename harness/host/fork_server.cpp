#include "host/fork_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "base/errors.h"
#include "base/printable.h"
#include "host/serve.h"

namespace peakbench::process {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostDeaths = 3;
constexpr auto kTimeToLoad = std::chrono::seconds(60);
constexpr auto kTimeToEnd = std::chrono::seconds(2);
constexpr int kSecondsToAnswer = 20;
constexpr int kServerPollMs = 20;

// In a session of its own: a Ctrl-C is for us.
pid_t spawn(const std::vector<std::string>& arguments, const Environment& environment, int socket,
            int output) {
  auto texts = arguments;
  const auto argv = pointers(texts);
  // Functions that are bound when they are first called would be bound in each run again, on pages
  // that it must copy for that.
  auto own = with_progress(environment);
  own.emplace_back("LD_BIND_NOW", "1");
  auto variables = merged_environment(own);
  const auto envp = pointers(variables);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, 1);
  posix_spawn_file_actions_adddup2(&files, output, 2);
  posix_spawn_file_actions_adddup2(&files, socket, kServerDescriptor);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  errno = posix_spawn(&pid, argv[0], &files, &attributes, argv.data(), envp.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return errno == 0 ? pid : -1;
}

// Out of the way of the numbers that the server's descriptors have.
int moved_up(int descriptor) {
  constexpr int kFirstFree = 10;
  const int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstFree);
  close(descriptor);
  return moved;
}

}  // namespace

ForkServer::ForkServer(std::vector<std::string> arguments, Environment environment)
    : arguments_(std::move(arguments)), environment_(std::move(environment)) {}

ForkServer::~ForkServer() { bury(); }

pid_t ForkServer::pid() const {
  const std::lock_guard lock(mutex_);
  return pid_;
}

ForkServer::Started ForkServer::start(const ProcessSpec& spec, const SupervisorEnds& ends,
                                      const std::function<bool()>& cancelled) {
  const std::lock_guard lock(mutex_);
  Started started;
  while (!given_up_) {
    if (pid_ < 0 && !open_server(cancelled, started.problem)) break;
    const auto answer = ask(spec, ends, started);
    if (answer == Answer::kStarted) break;
    const int status = bury();
    if (answer == Answer::kRefused) {
      given_up_ = true;
      break;
    }
    given_up_ = ++deaths_ >= kMostDeaths;
    started.problem = fmt::format(
        "the process that workers are forked from {}; {}", how_it_ended(status),
        given_up_ ? "it is the third: from now on each worker loads its libraries itself"
                  : "its processes continue, and another is started");
  }
  return started;
}

// False: none could be started.
bool ForkServer::open_server(const std::function<bool()>& cancelled, std::string& problem) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  const int theirs = moved_up(ends[1]);
  socket_.reset(moved_up(ends[0]));
  said_.reset(moved_up(memfd_create("peakbench-server-output", MFD_CLOEXEC)));
  const timeval patience{kSecondsToAnswer, 0};
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  pid_ = spawn(arguments_, environment_, theirs, said_.get());
  const int spawn_error = errno;
  close(theirs);
  if (pid_ > 0 && wait_for_hello(cancelled)) return true;
  const bool was_started = pid_ > 0;
  const int status = bury();
  if (cancelled()) return false;
  given_up_ = true;
  if (was_started && WIFEXITED(status) && WEXITSTATUS(status) == kServesNot) return false;
  problem =
      fmt::format("{} --serve, which workers are forked from, {}; each loads its libraries itself",
                  arguments_[0],
                  was_started ? how_it_ended(status)
                              : fmt::format("cannot be started: {}", host_error_text(spawn_error)));
  return false;
}

bool ForkServer::wait_for_hello(const std::function<bool()>& cancelled) const {
  const auto deadline = Clock::now() + kTimeToLoad;
  while (!cancelled() && Clock::now() < deadline) {
    pollfd wanted{socket_.get(), POLLIN, 0};
    if (poll(&wanted, 1, kServerPollMs) <= 0) continue;
    return receive_text(socket_.get()) == kHello;
  }
  return false;
}

ForkServer::Answer ForkServer::ask(const ProcessSpec& spec, const SupervisorEnds& ends,
                                   Started& started) {
  Pipe go;
  if (!go.open()) return Answer::kRefused;
  Request request{spec, ends, go.read.get()};
  request.spec.arguments.erase(request.spec.arguments.begin());
  const bool sent = send_request(socket_.get(), request);
  go.read.reset();
  const auto reply = sent ? receive_reply(socket_.get()) : std::nullopt;
  if (reply && reply->supervisor > 0) {
    started.supervisor = reply->supervisor;
    [[maybe_unused]] const auto written = write(go.write.get(), "g", 1);
  } else if (reply) {
    started.problem = fmt::format(
        "the process that workers are forked from must not be forked: {}; each loads its libraries "
        "itself",
        reply->refusal);
  }
  if (!reply) return Answer::kGone;
  return reply->supervisor > 0 ? Answer::kStarted : Answer::kRefused;
}

// Its exit status; it ends when its socket does.
int ForkServer::bury() {
  socket_.reset();
  int status = 0;
  const auto deadline = Clock::now() + kTimeToEnd;
  while (pid_ > 0) {
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_ || (ended < 0 && errno != EINTR)) pid_ = -1;
    if (pid_ > 0 && Clock::now() > deadline) kill(pid_, SIGKILL);
    if (pid_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return status;
}

// "was killed by SIGKILL", and the end of what it printed.
std::string ForkServer::how_it_ended(int status) const {
  std::string text = WIFSIGNALED(status)
                         ? fmt::format("was ended by SIG{}", sigabbrev_np(WTERMSIG(status)))
                         : fmt::format("ended with code {}", WEXITSTATUS(status));
  constexpr off_t kLastWords = 300;
  std::array<char, kLastWords> words{};
  const auto size = lseek(said_.get(), 0, SEEK_END);
  const auto count =
      pread(said_.get(), words.data(), words.size(), size > kLastWords ? size - kLastWords : 0);
  std::string_view last(words.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  while (!last.empty() && last.back() == '\n') last.remove_suffix(1);
  if (!last.empty()) text += fmt::format(" (it said: {})", printable(std::string(last)));
  return text;
}

}  // namespace peakbench::process

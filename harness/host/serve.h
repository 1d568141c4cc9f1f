#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/process.h"
#include "host/supervisor.h"

namespace peakbench::process {

// Messages between a fork server and its client, over a socket that keeps their boundaries.

// The descriptor of the server's that its socket has.
inline constexpr int kServerDescriptor = 3;
// With which a program that cannot serve answers `--serve`, as it does other unknown arguments.
inline constexpr int kServesNot = 2;
// Says that the server is ready. Another: of another version.
inline constexpr std::string_view kHello = "peakbench fork server 3";

struct Request {
  ProcessSpec spec;  // without its program: what follows it, what is added to the server's own
                     // environment, and the limits
  SupervisorEnds ends;
  int go = -1;  // a byte here starts it; if closed, it ends unnoticed
};

struct Reply {
  pid_t supervisor = -1;
  std::string refusal;  // why there is none; else empty
};

// Each false or nullopt where the other side is gone, or sent what is no such message. Descriptors
// that arrive are closed when another program is started; those of a request are the receiver's.
bool send_text(int socket, std::string_view text);
std::optional<std::string> receive_text(int socket);
bool send_request(int socket, const Request& request);
std::optional<Request> receive_request(int socket);
bool send_reply(int socket, const Reply& reply);
std::optional<Reply> receive_reply(int socket);

// Of a request, in the order in which they travel.
std::array<int*, 7> descriptors_of(Request& request);

// The server's side: a process that has loaded its program's slow libraries, and forks itself for
// each run of the program.
//
//   peakbench ------ socket ------ server            one thread, libraries loaded, nothing used
//       \                            | fork
//        \---- report, control ---- supervisor       one for each run: supervisor.h
//                                    | fork
//                                   program          what would have been exec'd runs here
//
// Each run has its own process and supervisor, as without a server. Neither needs the server once
// it runs: the pipes connect the supervisor with the client. If the server dies, only the time to
// load another is lost (fork_server.h).

struct Service {
  // Why this process must not be forked, as what it has used cannot be used again by a child;
  // empty: it may be. That it has one thread is looked after here.
  std::function<std::string()> objection;
  // What a run does, in a process of its own; its exit code. `arguments`: without the program.
  std::function<int(const std::vector<std::string>& arguments)> run;
};

// Serves the process that started this one, on kServerDescriptor, until it is gone.
[[noreturn]] void serve(const Service& service);

}  // namespace peakbench::process

// What a fork server and who asks it tell each other, over a socket of whole messages.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "process/process.h"
#include "process/supervisor.h"

namespace peakbench::process {

// The descriptor of the server's that its socket has.
inline constexpr int kServerDescriptor = 3;
// With which a program that cannot serve answers `--serve`, as it does other unknown arguments.
inline constexpr int kServesNot = 2;
// Says that the server is ready. Another: of another version.
inline constexpr std::string_view kHello = "peakbench fork server 1";

struct Request {
  ProcessSpec spec;  // without its program: what follows it, what is added to the server's own
                     // environment, and the limits
  SupervisorEnds ends;
  int go = -1;  // a byte that comes here lets it begin; the end instead: nobody knows of it
};

struct Reply {
  pid_t supervisor = -1;
  std::string refusal;  // why there is none
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

}  // namespace peakbench::process

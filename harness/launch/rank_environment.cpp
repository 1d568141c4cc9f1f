#include "launch/rank_environment.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "errors/errors.h"
#include "errors/host_limits.h"

namespace peakbench::launch {

process::Environment rank_environment(std::size_t rank, std::size_t ranks, int port) {
  if (ranks < 2) return {};
  const auto own = std::to_string(rank), all = std::to_string(ranks);
  return {{"RANK", own},
          {"LOCAL_RANK", own},
          {"WORLD_SIZE", all},
          {"LOCAL_WORLD_SIZE", all},
          {"GROUP_RANK", "0"},  // of the machine, among machines
          {"GROUP_WORLD_SIZE", "1"},
          {"ROLE_RANK", own},
          {"ROLE_WORLD_SIZE", all},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)}};
}

int free_port() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* name = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool found =
      file >= 0 && bind(file, name, size) == 0 && getsockname(file, name, &size) == 0;
  const int problem = errno;
  if (file >= 0) close(file);
  if (!found)
    throw HostError(
        fmt::format("no port for the processes to meet at: {}", host_error_text(problem)));
  return ntohs(address.sin_port);
}

}  // namespace peakbench::launch

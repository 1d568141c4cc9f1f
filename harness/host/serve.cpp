#include "host/serve.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/errors.h"
#include "base/file.h"

namespace peakbench::process {
namespace {

using nlohmann::json;

constexpr std::size_t kMostBytes = std::size_t{64} << 10;  // a path, a card and some numbers
constexpr std::size_t kDescriptors = 7;

union Ancillary {
  cmsghdr header;
  char room[CMSG_SPACE(kDescriptors * sizeof(int))];
};

struct Message {
  std::string bytes;
  std::vector<int> descriptors;
};

bool send_message(int socket, const std::string& bytes, const std::vector<int>& descriptors) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Ancillary control{};
  const auto size = descriptors.size() * sizeof(int);
  if (size > 0) {
    message.msg_control = control.room;
    message.msg_controllen = CMSG_SPACE(size);
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(header), descriptors.data(), size);
  }
  const ssize_t sent = TEMP_FAILURE_RETRY(sendmsg(socket, &message, MSG_NOSIGNAL));
  return sent == static_cast<ssize_t>(bytes.size());
}

std::vector<int> descriptors_in(msghdr& message) {
  std::vector<int> found;
  for (auto* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    found.resize((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(found.data(), CMSG_DATA(header), found.size() * sizeof(int));
  }
  return found;
}

std::optional<Message> receive_message(int socket) {
  Message received;
  received.bytes.resize(kMostBytes);
  iovec part{received.bytes.data(), received.bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Ancillary control{};
  message.msg_control = control.room;
  message.msg_controllen = sizeof control.room;
  const ssize_t size = TEMP_FAILURE_RETRY(recvmsg(socket, &message, MSG_CMSG_CLOEXEC));
  if (size <= 0) return std::nullopt;
  received.bytes.resize(static_cast<std::size_t>(size));
  received.descriptors = descriptors_in(message);
  return received;
}

// A list of values as MessagePack: texts may hold any bytes.
std::string packed(const json& values) {
  std::string bytes;
  json::to_msgpack(values, bytes);
  return bytes;
}

// Nullopt: it is no such list.
template <class... Values>
std::optional<std::tuple<Values...>> unpacked(const std::string& bytes) {
  try {
    return json::from_msgpack(bytes).get<std::tuple<Values...>>();
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

void close_all(const std::vector<int>& descriptors) {
  for (const int descriptor : descriptors) close(descriptor);
}

}  // namespace

std::array<int*, kDescriptors> descriptors_of(Request& request) {
  auto& ends = request.ends;
  return {&ends.progress_write, &ends.output_read,  &ends.output_write, &ends.log,
          &ends.control_read,   &ends.report_write, &request.go};
}

bool send_text(int socket, std::string_view text) {
  return send_message(socket, std::string(text), {});
}

std::optional<std::string> receive_text(int socket) {
  auto message = receive_message(socket);
  if (!message) return std::nullopt;
  close_all(message->descriptors);
  return std::move(message->bytes);
}

bool send_request(int socket, const Request& request) {
  const auto& spec = request.spec;
  const auto bytes = packed({spec.timeout.count(), spec.grace.count(), spec.rss_limit_bytes,
                             spec.arguments, spec.environment});
  if (bytes.size() > kMostBytes) return false;
  auto copy = request;
  std::vector<int> descriptors;
  for (const int* one : descriptors_of(copy)) descriptors.push_back(*one);
  return send_message(socket, bytes, descriptors);
}

std::optional<Request> receive_request(int socket) {
  const auto message = receive_message(socket);
  if (!message) return std::nullopt;
  auto values =
      unpacked<std::int64_t, std::int64_t, std::int64_t, std::vector<std::string>, Environment>(
          message->bytes);
  if (!values || message->descriptors.size() != kDescriptors) {
    close_all(message->descriptors);
    return std::nullopt;
  }
  Request request;
  auto& spec = request.spec;
  std::int64_t timeout_ms = 0, grace_ms = 0;
  std::tie(timeout_ms, grace_ms, spec.rss_limit_bytes, spec.arguments, spec.environment) =
      std::move(*values);
  spec.timeout = std::chrono::milliseconds(timeout_ms);
  spec.grace = std::chrono::milliseconds(grace_ms);
  const auto places = descriptors_of(request);
  for (std::size_t i = 0; i < kDescriptors; ++i) *places[i] = message->descriptors[i];
  return request;
}

bool send_reply(int socket, const Reply& reply) {
  return send_message(socket, packed({reply.supervisor, reply.refusal}), {});
}

std::optional<Reply> receive_reply(int socket) {
  const auto text = receive_text(socket);
  if (!text) return std::nullopt;
  const auto values = unpacked<pid_t, std::string>(*text);
  if (!values) return std::nullopt;
  return Reply{std::get<0>(*values), std::get<1>(*values)};
}

namespace {

// Threads are not forked, and what they held stays held.
std::string objection(const Service& service) {
  if (const auto count = files::names_in("/proc/self/task").size(); count != 1)
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
  if (TEMP_FAILURE_RETRY(read(go, &byte, 1)) != 1) _exit(0);
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

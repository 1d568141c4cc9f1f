#include "nccl/registry.h"

#include <mutex>
#include <unordered_map>

#include "core/streams.h"

namespace peakbench::emulator::nccl {
namespace {

struct Communicators {
  std::mutex mutex;
  std::unordered_map<void*, CommunicatorPtr> by_handle;
  std::unordered_map<std::uint64_t, std::weak_ptr<Communicator>> by_id;
  std::uint64_t next_id = 0;
  std::string last_error;
};

Communicators& communicators() {
  static auto* const communicators = new Communicators;
  return *communicators;
}

CommunicatorPtr communicator_of(std::uint64_t id) {
  const std::lock_guard lock(communicators().mutex);
  const auto found = communicators().by_id.find(id);
  return found == communicators().by_id.end() ? nullptr : found->second.lock();
}

constexpr TicketOffice kOffice = {
    [](const Ticket& ticket) {
      const auto communicator = communicator_of(ticket.communicator);
      return !communicator || communicator->is_done(ticket);
    },
    [](const Ticket& ticket) {
      if (const auto communicator = communicator_of(ticket.communicator))
        communicator->wait(ticket);
    }};

}  // namespace

std::uint64_t enter_communicator(const CommunicatorPtr& communicator) {
  open_ticket_office(&kOffice);
  const std::lock_guard lock(communicators().mutex);
  const auto id = ++communicators().next_id;
  communicators().by_id[id] = communicator;
  return id;
}

CommunicatorPtr find_communicator(void* handle) {
  const std::lock_guard lock(communicators().mutex);
  const auto found = communicators().by_handle.find(handle);
  return found == communicators().by_handle.end() ? nullptr : found->second;
}

void* handle_of(const CommunicatorPtr& communicator) {
  void* const handle = new_handle();
  const std::lock_guard lock(communicators().mutex);
  communicators().by_handle[handle] = communicator;
  return handle;
}

bool drop_communicator(void* handle) {
  const auto found = find_communicator(handle);
  if (!found) return false;
  found->leave();
  const std::lock_guard lock(communicators().mutex);
  communicators().by_handle.erase(handle);
  return true;
}

const char* last_error() {
  const std::lock_guard lock(communicators().mutex);
  thread_local std::string text;
  text = communicators().last_error;
  return text.c_str();
}

void set_last_error(const std::string& text) {
  const std::lock_guard lock(communicators().mutex);
  communicators().last_error = text;
}

}  // namespace peakbench::emulator::nccl

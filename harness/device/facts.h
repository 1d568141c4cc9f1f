// What a device says of itself, for the record.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "result/case.h"

namespace peakbench::device {

class Facts {
 public:
  virtual ~Facts() = default;
  virtual nlohmann::json settings() const = 0;     // what influences the bytes, as it is in force
  virtual nlohmann::json environment() const = 0;  // card, driver, cpu capability
  // What influences the times and changes by itself: a real card's driver, clocks and power state.
  virtual nlohmann::json state() const { return nlohmann::json::object(); }
  // A real card: what it shows as taken beyond what PyTorch reserved, the context (and what other
  // processes hold).
  virtual std::optional<std::int64_t> context_bytes() const { return {}; }
  // Whether this process runs on the stand-ins, whatever the case calls its device: kernels do
  // nothing there, and no value is defined.
  virtual bool emulated() const { return false; }
  virtual std::optional<result::Emulation> emulation() const { return {}; }
  // An emulated card: that this machine had no memory or addresses for what the card had room for.
  // Empty where it had.
  virtual std::string host_refusal() const { return {}; }
};

}  // namespace peakbench::device

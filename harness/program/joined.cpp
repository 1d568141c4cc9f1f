#include "program/joined.h"

#include <fmt/format.h>

#include <optional>
#include <unordered_map>

namespace peakbench::program {
namespace {

bool are_of_one_line(const trace::Trace& trace, std::int32_t a, std::int32_t b) {
  if (a == trace::kNone || b == trace::kNone) return false;
  const auto& one = trace.frames[static_cast<std::size_t>(a)];
  const auto& other = trace.frames[static_cast<std::size_t>(b)];
  return one.line > 0 && one.line == other.line && one.file == other.file;
}

struct Buffer {
  std::vector<std::uint64_t> states;
  bool outlives_a_step = false;
};

// The buffer that one of the sources is the last state of.
class Buffers {
 public:
  explicit Buffers(const trace::Trace& trace) : trace_(trace) {}

  void add(const Join& join) {
    const auto& result = trace_.events[join.result];
    auto at = buffers_.size();
    for (const auto source : join.sources) {
      const auto known = of_state_.find(source);
      if (known == of_state_.end()) continue;
      const auto& before = trace_.events[source];
      auto& buffer = buffers_[known->second];
      if (buffer.states.back() != source || !are_of_one_line(trace_, before.stack, result.stack))
        continue;
      at = known->second;
      buffer.outlives_a_step |= before.step != trace::kNone && before.step < result.step;
      break;
    }
    if (at == buffers_.size()) buffers_.emplace_back();
    buffers_[at].states.push_back(join.result);
    of_state_[join.result] = at;
  }

  const std::vector<Buffer>& all() const { return buffers_; }

 private:
  const trace::Trace& trace_;
  std::vector<Buffer> buffers_;
  std::unordered_map<std::uint64_t, std::size_t> of_state_;
};

}  // namespace

void name_joined(trace::Trace& trace, const std::vector<Join>& joins) {
  Buffers buffers(trace);
  for (const auto& join : joins) buffers.add(join);
  std::unordered_map<std::uint64_t, std::size_t> named;  // the first name of each
  for (std::size_t i = 0; i < trace.names.size(); ++i) named.try_emplace(trace.names[i].event, i);
  int number = 0;
  for (const auto& buffer : buffers.all()) {
    if (!buffer.outlives_a_step) continue;
    const auto text = fmt::format("joined buffer {}", ++number);
    for (const auto state : buffer.states) {
      const auto known = named.find(state);
      if (known == named.end())
        trace.names.push_back({state, trace::Role::kKept, text, "", ""});
      else if (auto& name = trace.names[known->second];
               name.role == trace::Role::kInput && name.name.empty())
        name.name = text;
    }
  }
}

}  // namespace peakbench::program

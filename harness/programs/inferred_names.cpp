#include "programs/inferred_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "base/errors.h"
#include "trace/lifetimes.h"

namespace peakbench::programs {
namespace {

using trace::Role;

enum class Maker { kReducer, kShards, kGathered, kOther };

// By the innermost frame. Reducer is C++, so that its caller is it:
// torch/nn/parallel/distributed.py makes it in _ddp_init_helper and lets it rebuild its buckets in
// _pre_forward.
Maker maker_of(std::string_view file, std::string_view function) {
  if (file.ends_with("/torch/nn/parallel/distributed.py"))
    return function == "_ddp_init_helper" || function == "_pre_forward" ? Maker::kReducer
                                                                        : Maker::kOther;
  if (file.find("/torch/distributed/fsdp/") == std::string_view::npos) return Maker::kOther;
  const bool gathers = file.ends_with("/_fsdp_param.py") &&
                       (function == "alloc_storage" || function == "init_all_gather_outputs");
  return gathers ? Maker::kGathered : Maker::kShards;
}

class Naming {
 public:
  Naming(trace::Trace& trace, const std::vector<Communicated>& given,
         const std::unordered_map<std::uint64_t, std::int32_t>& hooks)
      : trace_(trace), hooks_(hooks) {
    for (const auto& one : given) {
      if (one.allocation >= trace.events.size()) continue;  // behind where memory ran out
      const auto then = std::min<std::uint64_t>(one.event, trace.events.size() - 1);
      const bool in_step = trace.events[then].step != trace::kNone;
      const auto [known, is_new] = given_.try_emplace(one.allocation, Fact{&one, in_step});
      if (!is_new) known->second.in_step = known->second.in_step || in_step;
    }
    for (const auto& frame : trace.frames) makers_.push_back(maker(frame));
  }

  void name_all() {
    std::unordered_set<std::uint64_t> named, buckets;
    for (const auto& name : trace_.names) named.insert(name.event);
    std::vector<trace::Name> more;
    std::vector<std::uint64_t> undecided;
    for (std::uint64_t i = 0; i < trace_.events.size(); ++i) {
      if (trace_.events[i].kind != trace::EventKind::kAlloc) continue;
      const auto maker = maker_of_event(i);
      const bool is_given = given_.contains(i);
      if (maker == Maker::kReducer) {
        buckets.insert(i);
        more.push_back(name_of(i, Role::kCommunication, "DDP bucket"));
      } else if (named.contains(i)) {
        continue;
      } else if (maker == Maker::kGathered) {
        more.push_back(name_of(i, Role::kParameter, "FSDP gathered parameter"));
      } else if (is_given && maker == Maker::kShards) {
        more.push_back(name_of(i, Role::kCommunication, "FSDP buffer"));
      } else if (is_given) {
        undecided.push_back(i);
      }
    }
    std::erase_if(trace_.names,
                  [&](const trace::Name& name) { return buckets.contains(name.event); });
    trace_.names.insert(trace_.names.end(), more.begin(), more.end());
    if (!undecided.empty()) decide(undecided);
  }

 private:
  struct Fact {
    const Communicated* given;
    bool in_step;
  };

  Maker maker(const trace::StackFrame& frame) const {
    if (frame.file == trace::kNone || frame.function == trace::kNone) return Maker::kOther;
    const std::string_view function = trace_.functions[static_cast<std::size_t>(frame.function)];
    const bool is_comprehension = function == "<listcomp>" || function == "<genexpr>";
    if (is_comprehension && frame.parent != trace::kNone)  // it is part of who has it
      return makers_[static_cast<std::size_t>(frame.parent)];
    return maker_of(trace_.files[static_cast<std::size_t>(frame.file)], function);
  }
  Maker maker_of_event(std::uint64_t event) const {
    const auto hook = hooks_.find(event);
    const auto stack = hook == hooks_.end() ? trace_.events[event].stack : hook->second;
    return stack == trace::kNone ? Maker::kOther : makers_[static_cast<std::size_t>(stack)];
  }

  trace::Name name_of(std::uint64_t event, Role role, const char* name) const {
    const auto fact = given_.find(event);
    if (fact == given_.end()) return {event, role, name, "", ""};
    return {event, role, name, fact->second.given->shape, fact->second.given->dtype};
  }

  void decide(const std::vector<std::uint64_t>& undecided) {
    std::unordered_map<std::uint64_t, trace::Category> categories;
    try {
      for (const auto& lifetime : trace::lifetimes(trace_))
        if (given_.contains(lifetime.first)) categories[lifetime.first] = lifetime.category;
    } catch (const TraceError&) {
      return;  // who writes the trace tells of what does not add up
    }
    for (const auto event : undecided) {
      const auto category = categories.find(event);
      if (category == categories.end()) continue;
      const bool nothing_else =
          category->second == trace::Category::kTemporary ||
          category->second == trace::Category::kInput ||  // a guess: no model was called with it
          (category->second == trace::Category::kKept && given_.at(event).in_step);
      if (nothing_else) trace_.names.push_back(name_of(event, Role::kCommunication, ""));
    }
  }

  trace::Trace& trace_;
  const std::unordered_map<std::uint64_t, std::int32_t>& hooks_;
  std::unordered_map<std::uint64_t, Fact> given_;  // by allocation
  std::vector<Maker> makers_;                      // by frame
};

}  // namespace

void name_communication(trace::Trace& trace, const std::vector<Communicated>& given,
                        const std::unordered_map<std::uint64_t, std::int32_t>& hooks) {
  Naming(trace, given, hooks).name_all();
}

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

}  // namespace peakbench::programs

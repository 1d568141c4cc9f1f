// The field's own words for what a trace holds; the same in SQLite, JSON, reports and docs.
#include "trace/lifetimes.h"

namespace peakbench::trace {

const char* to_string(Category category) {
  static constexpr std::array<const char*, kCategoryCount> kWords = {"parameter",
                                                                     "buffer",
                                                                     "gradient",
                                                                     "optimizer_state",
                                                                     "input",
                                                                     "activation",
                                                                     "recomputed_activation",
                                                                     "temporary",
                                                                     "workspace",
                                                                     "communication",
                                                                     "graph_pool",
                                                                     "kept",
                                                                     "allocator_slack"};
  return kWords.at(static_cast<std::size_t>(category));
}

const char* to_string(Phase phase) {
  static constexpr std::array<const char*, kPhaseCount> kWords = {
      "build", "forward",    "backward",   "optimizer_step",
      "data",  "evaluation", "generation", "checkpoint"};
  return kWords.at(static_cast<std::size_t>(phase));
}

const char* to_string(EventKind kind) {
  static constexpr std::array<const char*, kEventKindCount> kWords = {
      "alloc",        "free",        "free_requested", "segment_alloc",
      "segment_free", "segment_map", "segment_unmap",  "out_of_memory"};
  return kWords.at(static_cast<std::size_t>(kind));
}

const char* to_string(ScopeKind kind) {
  static constexpr std::array<const char*, kScopeKindCount> kWords = {
      "phase",         "module",  "backward_node", "update",
      "recomputation", "capture", "larger_copy",   "frozen_copy"};
  return kWords.at(static_cast<std::size_t>(kind));
}

const char* to_string(Role role) { return to_string(category_of(role)); }

Category category_of(Role role) {
  switch (role) {
    case Role::kParameter:
      return Category::kParameter;
    case Role::kBuffer:
      return Category::kBuffer;
    case Role::kGradient:
      return Category::kGradient;
    case Role::kOptimizerState:
      return Category::kOptimizerState;
    case Role::kInput:
      return Category::kInput;
    case Role::kWorkspace:
      return Category::kWorkspace;
    case Role::kKept:
      return Category::kKept;
    case Role::kCommunication:
      return Category::kCommunication;
  }
  return Category::kTemporary;
}

}  // namespace peakbench::trace

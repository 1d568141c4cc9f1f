#include "autocast_state.h"

#include <ATen/autocast_mode.h>

namespace peakbench::checkpointing {

AutocastState AutocastState::of(at::DeviceType device) {
  return {device, at::autocast::is_autocast_enabled(device),
          at::autocast::is_autocast_cache_enabled(), at::autocast::get_autocast_dtype(device)};
}

void AutocastState::restore() const {
  at::autocast::set_autocast_enabled(device, enabled);
  at::autocast::set_autocast_dtype(device, dtype);
  at::autocast::set_autocast_cache_enabled(cache_enabled);
}

AutocastScope::AutocastScope(const std::vector<AutocastState>& states) {
  for (const AutocastState& state : states) {
    outer_.push_back(AutocastState::of(state.device));
    state.restore();
    at::autocast::increment_nesting();
  }
}

AutocastScope::~AutocastScope() {
  while (!outer_.empty()) {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    outer_.back().restore();
    outer_.pop_back();
  }
}

}  // namespace peakbench::checkpointing

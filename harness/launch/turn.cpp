#include "launch/turn.h"

#include "launch/case.h"
#include "launch/rounds.h"

namespace peakbench::launch {

Turn turn_of(const plan::Plan& plan, const CaseStates& states, std::size_t index,
             result::JobMode mode) {
  Turn turn;
  turn.case_id = plan.cases[index].spec.id;
  turn.mode = mode;
  turn.rounds = plan.request.repetitions;
  for (const auto i : states.pending) {
    if (plan.cases[i].decided) continue;
    const auto& result = states.results[i];
    if (!result) ++turn.memory_workers;
    if (!result && states.has_times[i])
      turn.throughput_workers += static_cast<std::size_t>(turn.rounds);
    if (result && is_to_be_timed(*result, plan.request))
      turn.throughput_workers += missing_rounds(*result, turn.rounds).size();
  }
  return turn;
}

}  // namespace peakbench::launch

#include "cudnn/plan_workspace.h"

#include <algorithm>
#include <vector>

#include "core/machine.h"
#include "core/own_ledger.h"
#include "cudnn/attention.h"
#include "cudnn/cudnn.h"

namespace peakbench::emulator::cudnn {
namespace {

using Standing = PlanWorkspace::Standing;

// The rows of a file for this cuDNN; null if it has none.
const MeasuredConvolutions* rows_of(const std::vector<MeasuredConvolutions>& measured) {
  const auto found = std::ranges::find(measured, static_cast<int>(version()),
                                       &MeasuredConvolutions::cudnn_version);
  return found == measured.end() ? nullptr : &*found;
}

struct Measured {
  std::vector<MeasuredConvolutions> here;                    // by release
  std::vector<std::vector<MeasuredConvolutions>> elsewhere;  // by card
};

const Measured& measured() {
  static const auto& measured = *[] {
    auto* all = new Measured;
    if (!card().measured_in.empty()) all->here = convolutions_in(card().measured_in);
    for (const auto& path : card().measured_elsewhere)
      all->elsewhere.push_back(convolutions_in(path));
    return all;
  }();
  return measured;
}

std::optional<PlanWorkspace> seen(const std::vector<MeasuredConvolutions>& by_release,
                                  const Convolution& convolution, ConvolutionPass pass,
                                  Standing standing) {
  const auto* rows = rows_of(by_release);
  if (rows == nullptr) return std::nullopt;
  const auto found = rows->bytes.find(convolution);
  if (found == rows->bytes.end()) return std::nullopt;
  const auto& bytes = found->second[static_cast<std::size_t>(pass)];
  if (!bytes) return std::nullopt;
  return PlanWorkspace{standing, *bytes, *bytes, *bytes, rows->source};
}

PlanWorkspace convolution_workspace(const ConvolutionCall& call) {
  const auto how = cudnn_settings();
  if (!how || how->benchmark || how->deterministic || chooses_otherwise()) return {};
  Convolution convolution = call.convolution;
  convolution.tf32 = convolution.dtype == "float32" && how->tf32;
  if (const auto found = seen(measured().here, convolution, call.pass, Standing::measured))
    return *found;
  for (const auto& of_card : measured().elsewhere)
    if (const auto found = seen(of_card, convolution, call.pass, Standing::measured_elsewhere))
      return *found;
  if (const auto guess =
          estimate(convolution, call.pass, by_tensor_cores(convolution, card().major)))
    return {Standing::estimated, guess->bytes, 0, guess->most_bytes, ""};
  return {};
}

}  // namespace

PlanWorkspace plan_workspace(const Descriptor& graph) {
  if (const auto call = convolution_of(graph)) return convolution_workspace(*call);
  const auto bytes = attention_workspace(graph);
  if (!bytes) return {};
  return {Standing::known, static_cast<std::uint64_t>(*bytes), 0, 0, ""};
}

}  // namespace peakbench::emulator::cudnn

#include "records.h"

#include <limits>

namespace peakbench::golden {
namespace {

using records::CaseResult;
using records::Memory;
using records::Run;
using records::Selection;
using records::Status;

struct Setting {
  Selection model;
  std::string device = "cpu";
  std::int64_t batch = 1;
  std::optional<std::int64_t> sequence;
};

std::string stack_of(const std::vector<Selection>& strategies) {
  std::string text;
  for (const Selection& strategy : strategies) text += (text.empty() ? "" : "+") + strategy.id;
  return text;
}

CaseResult make_case(const Setting& setting, std::vector<Selection> strategies) {
  CaseResult result;
  result.spec.model = setting.model;
  result.spec.id = setting.model.id + "/" + stack_of(strategies) + "/" + setting.device +
                   "/fp32/b" + std::to_string(setting.batch);
  if (setting.sequence) result.spec.id += "/s" + std::to_string(*setting.sequence);
  result.spec.slug = "case";
  result.spec.strategies = std::move(strategies);
  result.spec.device = setting.device;
  result.spec.dtype = "fp32";
  result.spec.batch_size = setting.batch;
  result.spec.sequence_length = setting.sequence;
  return result;
}

void set_memory(CaseResult& result, std::map<std::string, std::int64_t> at_peak,
                const std::string& phase) {
  Memory memory;
  for (const auto& [category, bytes] : at_peak) memory.peak_allocated_bytes += bytes;
  memory.peak_requested_bytes = memory.peak_allocated_bytes -
                                (at_peak.count("allocator_slack") ? at_peak["allocator_slack"] : 0);
  memory.at_peak = std::move(at_peak);
  memory.peak_phase = phase;
  memory.peak_step = 1;
  memory.steps = 3;
  const std::int64_t peak = memory.peak_allocated_bytes;
  const auto part = [peak](int percent) {
    return records::PhaseMemory{peak / 100 * percent, peak / 100 * percent};
  };
  memory.phases = {{"build", part(22)},
                   {"forward", part(81)},
                   {"backward", part(92)},
                   {"optimizer_step", part(88)}};
  memory.phases[phase] = {peak, memory.peak_requested_bytes};
  memory.spaces = {{result.spec.device.rfind("emulated", 0) == 0 ? "cuda:0" : "cpu",
                    {peak, memory.peak_requested_bytes, {}}}};
  memory.worker_peak_rss_bytes = result.emulation ? 612'345'678 : peak + 402'653'184;
  result.memory = std::move(memory);
  result.ranks = {{0, result.memory, "cases/" + result.spec.slug + "/trace.sqlite"}};
}

// Rounds around the case's median: all cases drift alike by -10, 0 and +20 per mille, and this one
// varies by `noise` beside it.
std::vector<records::TimingRound> rounds_of(std::int64_t median_ns,
                                            const std::vector<std::int64_t>& noise_per_mille) {
  constexpr std::int64_t kDrift[] = {-10, 0, 20};
  std::vector<records::TimingRound> rounds;
  for (const std::int64_t noise : noise_per_mille) {
    const auto round = rounds.size();
    const std::int64_t step = median_ns / 1000 * (1000 + kDrift[round % 3] + noise);
    rounds.push_back({static_cast<std::int64_t>(round),
                      static_cast<std::int64_t>(round * 2 % 5),
                      {step + step / 25, step - step / 50, step},
                      0.04});
  }
  return rounds;
}

void set_step(CaseResult& result, std::int64_t median_ns,
              const std::vector<std::int64_t>& noise_per_mille) {
  records::Throughput throughput;
  throughput.step_ns = {median_ns - median_ns / 50, median_ns, median_ns + median_ns / 25,
                        static_cast<std::int64_t>(3 * noise_per_mille.size())};
  throughput.rounds = rounds_of(median_ns, noise_per_mille);
  const auto batch = static_cast<double>(result.spec.batch_size);
  throughput.samples_per_second = batch * 1e9 / static_cast<double>(median_ns);
  if (result.spec.sequence_length) {
    throughput.tokens_per_second =
        throughput.samples_per_second * static_cast<double>(*result.spec.sequence_length);
  }
  throughput.clock = "steady_clock";
  throughput.threads = 2;
  result.throughput = throughput;
  result.losses = {0.6931472, 0.6412345, 0.6098765};
  result.settings = {{"threads", 2}, {"allocator", {{"alignment_bytes", 64}}}};
  result.wall_ns = median_ns * 18;
}

void set_promise(CaseResult& result, const std::string& promise, const std::string& verdict,
                 const std::string& reason = "") {
  records::Equivalence equivalence;
  equivalence.promise = promise;
  equivalence.verdict = verdict;
  equivalence.reason = reason;
  if (verdict == "held") equivalence.max_abs_difference = 0;
  if (verdict == "broken") equivalence.max_abs_difference = 3.2e-4;
  result.equivalence = equivalence;
}

CaseResult failed(CaseResult result, Status status, const std::string& reason) {
  result.status = status;
  result.reason = reason;
  return result;
}

void add_vit(Run& run) {
  const Setting vit{{"vit-l-16", nlohmann::json::object()}, "cpu", 1, {}};
  CaseResult base = make_case(vit, {{"baseline", {}}});
  set_memory(base,
             {{"parameter", 1217306528},
              {"gradient", 1217306528},
              {"optimizer_state", 2434615056},
              {"input", 602112},
              {"temporary", 1218108544}},
             "optimizer_step");
  set_step(base, 2'431'000'000, {0, 0, 0});
  CaseResult single = make_case(vit, {{"foreach-off", {}}});
  set_memory(single,
             {{"parameter", 1217306528},
              {"gradient", 1217306528},
              {"optimizer_state", 2434615056},
              {"input", 602112},
              {"temporary", 34372832}},
             "optimizer_step");
  // Not told from noise, and a machine that was busy.
  set_step(single, 2'472'000'000, {-15, 10, 30});
  single.throughput->rounds[2].other_busy_cores = 1.31;
  set_promise(single, "bit_identical", "held");
  CaseResult fused = make_case(vit, {{"fused-in-backward", {}}});
  set_memory(fused,
             {{"parameter", 1217306528},
              {"gradient", 16777216},
              {"optimizer_state", 2434615056},
              {"input", 602112},
              {"activation", 340107548},
              {"temporary", 4485448}},
             "backward");
  set_step(fused, 2'386'000'000, {0, 1, -1});
  set_promise(fused, "bit_identical", "held");
  CaseResult lora = make_case(vit, {{"lora", {{"rank", 8}}}});
  set_memory(lora,
             {{"parameter", 1225695136},
              {"gradient", 7864320},
              {"optimizer_state", 15728640},
              {"input", 602112},
              {"activation", 362107548},
              {"temporary", 20971520}},
             "backward");
  set_step(lora, 1'702'000'000, {0, 2, -2});
  set_promise(lora, "different_problem", "not_checked");
  CaseResult both = make_case(vit, {{"fused-in-backward", {}}, {"checkpointing", {{"every", 2}}}});
  set_memory(both,
             {{"parameter", 1217306528},
              {"gradient", 16777216},
              {"optimizer_state", 2434615056},
              {"input", 602112},
              {"activation", 20766720},
              {"recomputed_activation", 27291648},
              {"temporary", 4485448}},
             "backward");
  set_step(both, 2'951'000'000, {-3, 0, 3});
  set_promise(both, "bit_identical", "broken",
              "the parameter encoder.layers.3.mlp.0.weight differs after step 2");
  run.cases = {
      base,
      single,
      fused,
      lora,
      both,
      failed(make_case(vit, {{"foreach-off", {}}, {"fused-in-backward", {}}}), Status::kConflict,
             "foreach-off chooses how many tensors a kernel updates; fused-in-backward updates one "
             "parameter at a time")};
}

void add_qwen(Run& run) {
  const Setting qwen{{"qwen2.5-0.5b", nlohmann::json::object()}, "cpu", 1, 256};
  CaseResult base = make_case(qwen, {{"baseline", {}}});
  set_memory(base,
             {{"parameter", 1976131072},
              {"gradient", 1976131072},
              {"optimizer_state", 3952263316},
              {"input", 4096},
              {"temporary", 1976135168}},
             "optimizer_step");
  set_step(base, 9'840'000'000, {0});  // one round: no interval
  CaseResult fused = make_case(qwen, {{"fused-in-backward", {}}});
  set_memory(fused,
             {{"parameter", 1976131072},
              {"gradient", 544997376},
              {"optimizer_state", 3952263316},
              {"input", 4096},
              {"activation", 912345678},
              {"temporary", 155582464}},
             "backward");
  set_step(fused, 9'632'000'000, {0});
  set_promise(fused, "within_tolerance", "not_checked", "the reference's parameters were not kept");
  CaseResult full = failed(make_case(qwen, {{"checkpointing", {}}}), Status::kOutOfMemory,
                           "asked for 544,997,376 bytes in optimizer_step with 24.0 GiB in use");
  full.out_of_memory =
      records::OutOfMemory{544997376,        25'100'000'000, 25'769'803'776,        {}, {}, {},
                           "optimizer_step", "lm_head",      "aten::_foreach_sqrt", 0,  {}};
  run.cases.insert(run.cases.end(),
                   {base, fused, full,
                    failed(make_case(qwen, {{"lora", {{"rank", 8}}}}), Status::kTimeout,
                           "no step ended within 3,600 s; its log is cases/x/worker.log"),
                    failed(make_case(qwen, {{"lora", {{"targets", "output"}}}}),
                           Status::kUnsupported, "the output head is tied to the embedding")});
}

}  // namespace

Run tutorial_run() {
  Run run;
  run.title = "The tutorial's cases";
  run.created = "2026-11-03T14:05:09Z";
  run.command = {"peakbench", "run", "suites/tutorial.toml", "--out", "results/the tutorial"};
  run.suite = "suites/tutorial.toml";
  run.reference = "baseline";
  run.environment = {{"peakbench", "0.1.0"},
                     {"commit", "0123456789ab"},
                     {"libtorch", {{"version", "2.11.0+cu130"}, {"cpu_capability", "AVX2"}}},
                     {"os", "Debian GNU/Linux 12"},
                     {"cpu", "a processor of two cores"},
                     {"logical_cores", 2},
                     {"memory_bytes", 25769803776}};
  run.settings = {{"steps", 3}, {"warmup", 1},       {"repetitions", 3},
                  {"seed", 0},  {"timeout_s", 3600}, {"memory_limit_bytes", 25769803776}};
  const std::string source =
      "PyTorch tutorial: save memory by fusing the optimizer step into the backward pass";
  const std::string url =
      "https://pytorch.org/tutorials/intermediate/optimizer_step_in_backward_tutorial.html";
  run.published = {
      {"vit-l-16", "baseline", "peak_memory", 6, "GB", source, url, "on a CUDA card"},
      {"vit-l-16", "foreach-off", "peak_memory", 4.8, "GB", source, url, "on a CUDA card"},
      {"vit-l-16", "fused-in-backward", "peak_memory", 4, "GB", source, url, "on a CUDA card"}};
  add_vit(run);
  add_qwen(run);
  return run;
}

Run emulated_run() {
  Run run = tutorial_run();
  run.title = "A card that is not there";
  run.cases.resize(3);
  for (CaseResult result : {run.cases[0], run.cases[2]}) {
    result.spec.device = "emulated:h100-80gb";
    result.spec.id = "vit-l-16/" + stack_of(result.spec.strategies) + "/emulated:h100-80gb/fp32/b1";
    result.throughput.reset();
    result.throughput_reason = "an emulated card has no clock";
    result.emulation = records::Emulation{
        "h100-80gb",
        {"cublasLtMatmulAlgoInit"},
        {{"cudnn engine workspace", 6}},
        nlohmann::json::array({{{"bytes", 1}, {"count", 3}, {"caller", "aten::is_nonzero"}}})};
    std::map<std::string, std::int64_t> at_peak = result.memory->at_peak;
    at_peak["workspace"] = 68'157'440;
    at_peak["allocator_slack"] = 6'689'248;
    set_memory(result, at_peak, result.memory->peak_phase);
    result.memory->peak_reserved_bytes = result.memory->peak_allocated_bytes + 269'180'928;
    result.memory->spaces["cuda:0"].peak_reserved_bytes = result.memory->peak_reserved_bytes;
    result.memory->spaces["cpu"] = {1184, 1184, {}};
    result.environment = {{"card", "NVIDIA H100 80GB HBM3"},
                          {"card_memory_bytes", 85'899'345'920},
                          {"driver_cuda_version", 13000},
                          {"emulated", true}};
    set_promise(result, "bit_identical", "not_checked", "an emulated card computes no values");
    result.equivalence->reference_case = "vit-l-16/baseline/emulated:h100-80gb/fp32/b1";
    run.cases.push_back(result);
  }
  CaseResult full = failed(run.cases[3], Status::kOutOfMemory, "asked for 1 GiB with 0.5 GiB left");
  full.spec.strategies = {{"checkpointing", {}}};
  full.spec.id = "vit-l-16/checkpointing/emulated:h100-80gb/fp32/b1";
  full.memory.reset();
  full.ranks.clear();
  full.out_of_memory =
      records::OutOfMemory{1 << 30, 100, 200, {}, {}, {}, "forward", "", "", 0, {}};
  full.out_of_memory->needed_bytes = std::int64_t{96} << 30;
  full.out_of_memory->needed_allocated_bytes = std::int64_t{90} << 30;
  run.cases.push_back(full);
  return run;
}

namespace {

// The card's own figures, and what an offload takes beside it.
CaseResult on_card(const std::string& device, std::vector<Selection> strategies, std::int64_t peak,
                   std::int64_t pinned) {
  const Setting setting{{"vit-l-16", nlohmann::json::object()}, device, 8, {}};
  CaseResult result = make_case(setting, std::move(strategies));
  set_memory(result, {{"parameter", peak / 4}, {"activation", peak - peak / 4}}, "backward");
  result.memory->space = device;
  result.memory->peak_reserved_bytes = peak + (std::int64_t{1} << 28);
  result.memory->spaces = {{device, {peak, peak, result.memory->peak_reserved_bytes}},
                           {"cpu", {1184, 1184, {}}}};
  if (pinned > 0) result.memory->spaces["pinned"] = {pinned, pinned, {}};
  const bool second = device == "cuda:1";
  result.environment = {{"card", second ? "NVIDIA L4" : "NVIDIA A100-SXM4-40GB"},
                        {"card_memory_bytes", second ? 23'609'475'072 : 42'297'786'368},
                        {"driver_cuda_version", 13000},
                        {"emulated", false}};
  set_promise(result, "bit_identical", "not_checked",
              "promises are checked on the CPU, where results repeat");
  result.equivalence->reference_case = "vit-l-16/baseline/" + device + "/fp32/b8";
  return result;
}

// So little that each difference is told from it.
std::vector<std::int64_t> steady_noise(const CaseResult& result) {
  const bool is_baseline = result.spec.strategies.front().id == "baseline";
  return is_baseline ? std::vector<std::int64_t>{0, 0, 0} : std::vector<std::int64_t>{0, 1, -1};
}

void add_cards(Run& run) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  const Selection baseline{"baseline", {}}, offload{"offload", {}}, lora{"lora", {}},
      checkpointing{"checkpointing", {}};
  run.cases = {on_card("cuda:0", {baseline}, 8 * kGiB, 0),
               on_card("cuda:0", {offload}, 3 * kGiB, 5 * kGiB),
               on_card("cuda:0", {checkpointing}, 5 * kGiB, 0),
               failed(on_card("cuda:0", {lora, checkpointing}, 2 * kGiB, 0), Status::kNoEffect,
                      "checkpointing declares the wrapper `block`, which was never called"),
               on_card("cuda:1", {baseline}, 8 * kGiB, 0),
               on_card("cuda:1", {lora}, 4 * kGiB, 0),
               on_card("cuda:1", {lora, checkpointing}, 2 * kGiB, 0)};
  std::int64_t step = 100'000'000;
  for (CaseResult& result : run.cases)
    if (result.status == Status::kOk) set_step(result, step += 10'000'000, steady_noise(result));
  // May be as fast as the baseline.
  set_step(run.cases[1], 120'000'000, {-80, 0, 80});
  run.cases[3].memory.reset();
  set_promise(run.cases[5], "different_problem", "not_checked");
  run.cases[5].equivalence->different_problem = true;
  run.cases[6].equivalence->different_problem = true;
  run.cases[6].equivalence->reference_case = run.cases[5].spec.id;
}

// On the CPU, where promises are checked.
void add_checked(Run& run) {
  const Setting vit{{"vit-b-16", nlohmann::json::object()}, "cpu", 1, {}};
  const auto add = [&](std::vector<Selection> strategies, std::int64_t peak,
                       const std::string& promise, const std::string& verdict) {
    CaseResult result = make_case(vit, std::move(strategies));
    set_memory(result, {{"parameter", peak}}, "backward");
    set_step(result, peak / 2, steady_noise(result));
    set_promise(result, promise, verdict);
    result.equivalence->reference_case = "vit-b-16/baseline/cpu/fp32/b1";
    run.cases.push_back(std::move(result));
    return &run.cases.back();
  };
  run.cases.reserve(run.cases.size() + 5);
  add({{"baseline", {}}}, 2'000'000'000, "bit_identical", "not_checked");
  CaseResult* eight_bit = add({{"eight-bit", {}}}, 1'500'000'000, "within_tolerance", "held");
  eight_bit->equivalence->tolerance = 1e-5;
  eight_bit->equivalence->relative_tolerance = 1e-3;
  eight_bit->equivalence->max_abs_difference = 2.5e-6;
  CaseResult* broken = add({{"wild", {}}}, 500'000'000, "within_tolerance", "broken");
  broken->equivalence->tolerance = 1e-5;
  broken->equivalence->max_abs_difference = std::numeric_limits<double>::quiet_NaN();
  broken->losses = {0.69, std::numeric_limits<double>::quiet_NaN(),
                    std::numeric_limits<double>::infinity()};
  CaseResult* lora = add({{"lora", {}}}, 1'000'000'000, "different_problem", "not_checked");
  lora->equivalence->different_problem = true;
  CaseResult* stack =
      add({{"lora", {}}, {"checkpointing", {}}}, 800'000'000, "bit_identical", "held");
  stack->equivalence->different_problem = true;
  stack->equivalence->reference_case = lora->spec.id;
}

}  // namespace

Run cards_run() {
  Run run = tutorial_run();
  run.title = "Two cards and a processor";
  run.published.clear();
  add_cards(run);
  add_checked(run);
  return run;
}

Run hostile_run() {
  Run run = tutorial_run();
  const std::string evil =
      "</script><img src=x onerror=alert(1)>\"'`&{{title}}|*_[x](javascript:alert(1)) @all :tada: "
      "\U0001F4A5\u202E\x1b[31m\xff";
  run.title = evil;
  run.suite = evil;
  run.command = {"peakbench", "run", "--model", "a\n```\n# heading", evil};
  run.environment = {{evil, evil}};
  run.settings = {{evil, {evil, 1, nullptr}}};
  run.published[0].source = evil;
  run.published[0].url = "javascript:alert(1)";
  run.published[1].unit = evil;
  run.published[2].note = evil;
  for (CaseResult& result : run.cases) {
    result.spec.id = evil + result.spec.id;
    result.reason = evil;
  }
  run.cases[1].spec.strategies = {{evil, {{evil, evil}}}};
  run.cases[1].memory->at_peak = {
      {evil, records::Memory(*run.cases[1].memory).peak_allocated_bytes}};
  run.cases[2].spec.strategies = {{std::string(300, 'x'), {}}};
  run.cases[6].spec.model.id = evil;
  run.cases[6].memory->peak_phase = evil;
  run.pending = {evil};
  return run;
}

Run interrupted_run() {
  Run run = tutorial_run();
  run.status = "interrupted";
  run.cases.clear();
  run.pending = {"vit-l-16/baseline/cpu/fp32/b1", "vit-l-16/lora/cpu/fp32/b1"};
  return run;
}

Run many_cases(int count) {
  Run run = tutorial_run();
  const std::vector<CaseResult> some = run.cases;
  run.cases.clear();
  for (int i = 0; i < count; ++i) {
    CaseResult result = some[static_cast<std::size_t>(i) % some.size()];
    result.spec.batch_size = 1 + i / 20;
    run.cases.push_back(std::move(result));
  }
  return run;
}

}  // namespace peakbench::golden

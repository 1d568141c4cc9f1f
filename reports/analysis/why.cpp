#include "reports/analysis/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>

#include "base/numbers.h"
#include "reports/analysis/findings.h"
#include "reports/analysis/strategies_against.h"
#include "trace/timeline.h"

namespace peakbench::analysis {
namespace {

using trace::Category;
using trace::Phase;

std::string in_range(const trace::Trace& trace, std::uint64_t event) {
  const auto range = trace.events[event].range;
  return range == trace::kNone ? "" : ", in your range \"" + trace::range_name(trace, range) + "\"";
}

// What a line holds of one category.
struct Share {
  std::int64_t bytes = 0;
  Category category = Category::kTemporary;
  trace::SourceLine line;
};

// The largest shares of known lines, until half of the bytes are told; three at most.
std::vector<Share> main_shares(const std::vector<trace::LineShare>& lines, std::int64_t total) {
  std::vector<Share> shares;
  for (const auto& line : lines)
    for (std::size_t i = 0; i < trace::kCategoryCount; ++i)
      if (line.by_category[i] > 0 && !line.line.file.empty())
        shares.push_back({line.by_category[i], static_cast<Category>(i), line.line});
  std::ranges::stable_sort(shares,
                           [](const Share& a, const Share& b) { return a.bytes > b.bytes; });
  constexpr std::size_t kMost = 3;
  std::size_t told = 0;
  for (std::int64_t sum = 0; told < std::min(kMost, shares.size()) && sum <= total / 2; ++told)
    sum += shares[told].bytes;
  shares.resize(told);
  return shares;
}

// "5.200 GiB of 8.104 GiB is activations made at train.py:42 (forward), 1.100 GiB is ...".
std::string composition(const std::vector<Share>& shares, std::int64_t total,
                        const LineNames& names) {
  std::string text;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (i > 0) text += i + 1 == shares.size() ? " and " : ", ";
    text += fmt::format("{}{} is {} made at {}", in_words(shares[i].bytes),
                        i == 0 ? " of " + in_words(total) : "", in_words(shares[i].category),
                        names.in_words(shares[i].line));
  }
  return text;
}

// The failure that ended the trace: nothing was allocated after it.
std::optional<std::uint64_t> failure_of(const trace::Trace& trace) {
  std::optional<std::uint64_t> failure;
  for (std::uint64_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].kind == trace::EventKind::kOutOfMemory) failure = i;
    if (trace.events[i].kind == trace::EventKind::kAlloc) failure.reset();
  }
  return failure;
}

std::vector<Finding> find_out_of_memory(const Program& program) {
  const auto failure = failure_of(program.trace);
  if (!failure) return {};
  const auto& event = program.trace.events[*failure];
  Finding finding{FindingKind::kOutOfMemory, "", event.requested_bytes, 0,
                  program.lines.at(program.lines.of(event.stack))};
  finding.sentence = fmt::format(
      "Memory ran out{}{}: {} was asked for", when(program.trace, " ", event.phase, event.step),
      in_range(program.trace, *failure), in_words(event.requested_bytes));
  if (!finding.line.file.empty()) finding.sentence += " at " + program.names.in_words(finding.line);
  if (event.address > 0) finding.sentence += fmt::format(", {} was free", size_text(event.address));
  const auto lines = trace::lines_at(program.trace, program.lifetimes, *failure);
  std::int64_t total = 0;
  for (const auto& line : lines) total += line.bytes;
  if (const auto shares = main_shares(lines, total); !shares.empty())
    finding.sentence += "; " + composition(shares, total, program.names);
  finding.sentence += ".";
  if (const auto remedy = remedy_for_program(program.trace, program.lifetimes, *failure);
      !remedy.empty())
    finding.sentence += " " + remedy + ".";
  return {finding};
}

bool is_activation(const Program& program, std::uint64_t event) {
  const auto made = std::ranges::lower_bound(program.lifetimes, event, {}, &trace::Lifetime::first);
  return made != program.lifetimes.end() && made->first == event &&
         made->category == Category::kActivation;
}

std::string peak_sentence(const Program& program) {
  auto peak = program.peak;
  // What is made behind an evaluation's call and is no batch is the evaluation's.
  if (peak.phase == Phase::kData && is_activation(program, peak.event))
    peak.phase = Phase::kEvaluation;
  const auto text = level_text(program.trace, peak) + in_range(program.trace, peak.event);
  const auto shares = main_shares(trace::lines_at(program.trace, program.lifetimes, peak.event),
                                  peak.allocated_bytes);
  return text +
         (shares.empty() ? "" : ": " + composition(shares, peak.allocated_bytes, program.names)) +
         ".";
}

std::uint64_t first_call_of(const trace::Trace& trace) {
  const auto call = std::ranges::find_if(trace.events, [](const trace::Event& event) {
    return event.step != trace::kNone && event.phase != Phase::kData;
  });
  return static_cast<std::uint64_t>(call - trace.events.begin());
}

// What a finding explains, of what the card needs: beside the peak's bytes those that are reserved.
std::int64_t explained_by(const Finding& finding) {
  const bool is_reserved =
      finding.kind == FindingKind::kReserved || finding.kind == FindingKind::kPools;
  return is_reserved ? finding.bytes : finding.at_peak_bytes;
}

// Where memory ran out: a leak is why it did, and comes first.
int place_of(FindingKind kind) {
  if (kind == FindingKind::kOutOfMemory) return 1;
  const bool leaks = kind == FindingKind::kGrowth || kind == FindingKind::kKept;
  return leaks ? 0 : 2;
}

void append(std::vector<Finding>& all, std::vector<Finding> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

const char* in_words(Category category) {
  static constexpr std::array<const char*, trace::kCategoryCount> kWords = {
      "parameters",
      "buffers",
      "gradients",
      "optimizer state",
      "inputs",
      "activations",
      "recomputed activations",
      "temporary memory",
      "library workspaces",
      "buffers of communication",
      "memory of CUDA graphs",
      "kept memory",
      "allocator slack"};
  return kWords.at(static_cast<std::size_t>(category));
}

std::string when(Phase phase, std::int32_t step) {
  static constexpr std::array<const char*, trace::kPhaseCount> kWords = {
      "before the first step",
      "in forward",
      "in backward",
      "in the optimizer step",
      "outside of forward, backward and optimizer step",
      "in evaluation",
      "in generation",
      "while a checkpoint is saved"};
  // Of a snapshot of PyTorch's: its annotations say no more.
  const bool is_unsaid = phase == Phase::kBuild && step != trace::kNone;
  const std::string words =
      is_unsaid ? "outside of the optimizer step" : kWords.at(static_cast<std::size_t>(phase));
  if (step == trace::kNone) return words;
  const auto number = std::to_string(step + 1);
  return words +
         (phase < Phase::kData && !is_unsaid ? " of step " + number : " (step " + number + ")");
}

std::string when(const trace::Trace& trace, const char* before, Phase phase, std::int32_t step) {
  const bool is_known = !trace.scopes.empty() || phase != Phase::kBuild;
  return is_known ? before + when(phase, step) : "";
}

std::string level_text(const trace::Trace& trace, const trace::Peak& peak) {
  return fmt::format("The peak is {} allocated{}", in_words(peak.allocated_bytes),
                     when(trace, ", ", peak.phase, peak.step));
}

const char* to_string(FindingKind kind) {
  static constexpr std::array<const char*, 17> kWords = {
      "out_of_memory", "growth", "evaluation",    "kept",      "conversion", "frozen",
      "elsewhere",     "inputs", "models",        "reserved",  "gathered",   "outputs",
      "step",          "loaded", "checkpointing", "attention", "pools"};
  return kWords.at(static_cast<std::size_t>(kind));
}

std::string page_of(std::string_view kind) { return fmt::format("docs/how-to/causes.md#{}", kind); }

Why why(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes) {
  if (trace.frames.empty() || trace.events.empty()) return {};
  const auto most = trace::maxima(trace, lifetimes);
  const auto peak = trace::peak_of(trace, lifetimes, most);
  const trace::OwnLines lines(trace);
  const LineNames names(trace);
  const Steps steps(trace);
  const Program program{
      trace, lifetimes, peak, lines, names, steps, first_call_of(trace), most.reserved_bytes};
  Why found;
  found.peak = peak_sentence(program);
  found.peak_bytes = peak.allocated_bytes;
  found.findings = find_out_of_memory(program);
  const auto grown = find_growth(program);
  append(found.findings, grown);
  append(found.findings, find_joined(program));
  append(found.findings, find_evaluation(program));
  append(found.findings, find_kept(program, grown));
  for (const auto find : {find_larger_copies, find_frozen_copies, find_elsewhere, find_inputs,
                          find_models, find_reserved, find_gathered, find_outputs})
    append(found.findings, find(program));
  append(found.findings, find_unusual_step(program, found.findings));
  for (const auto find : {find_loaded, find_checkpointing, find_attention, find_pools})
    append(found.findings, find(program));
  return found;
}

std::vector<Sentence> sentences_of(const Why& why) {
  constexpr std::int64_t kLeadingShare = 10;
  if (why.peak.empty()) return {};
  std::vector<const Finding*> leading, others;
  for (const auto& finding : why.findings) {
    const bool leads = finding.kind == FindingKind::kOutOfMemory ||
                       explained_by(finding) * kLeadingShare >= why.peak_bytes;
    (leads ? leading : others).push_back(&finding);
  }
  const bool ran_out = std::ranges::any_of(
      leading, [](const Finding* one) { return one->kind == FindingKind::kOutOfMemory; });
  std::ranges::stable_sort(leading, [&](const Finding* a, const Finding* b) {
    const int first = ran_out ? place_of(a->kind) : 0, second = ran_out ? place_of(b->kind) : 0;
    return first != second ? first < second : explained_by(*a) > explained_by(*b);
  });
  std::vector<Sentence> sentences;
  const auto say = [&](const Finding* finding) {
    sentences.push_back({finding->sentence, to_string(finding->kind)});
  };
  std::ranges::for_each(leading, say);
  sentences.push_back({why.peak, ""});
  std::ranges::for_each(others, say);
  return sentences;
}

}  // namespace peakbench::analysis

// What the template of the page is given.
#pragma once

#include <string>
#include <vector>

#include "reports/fidelity/record.h"
#include "reports/render/record.h"

namespace peakbench::fidelity {

using reports::FieldValues;

// The same figure, rebuilt in another way.
struct OtherView {
  std::string configuration, bytes, difference, grade, phase;

  FieldValues fields() const {
    return {{"configuration", configuration, "The case, or the program and its arguments"},
            {"bytes", bytes, "Ours, in bytes"},
            {"difference", difference, "Ours against the published figure, signed per cent"},
            {"grade", grade, "How much of the configuration is the same"},
            {"phase", phase, "Where our peak lies"}};
  }
};

struct FigureView {
  std::string card, configuration, metric, published, unit, bytes, difference, grade, phase, note,
      row_url, cause, explanation, at_peak, verdict, versions, our_versions, date, reason;
  bool measured = false, differs = false, within_rounding = false, is_bound = false;
  std::vector<OtherView> others = {};

  FieldValues fields() const {
    return {{"card", card, "The emulated card that stands for the publisher's"},
            {"configuration", configuration, "The case, or the program and its arguments"},
            {"metric", metric, "The kind of figure: allocated, active, reserved, memory"},
            {"published", published, "As published"},
            {"unit", unit, "Its unit; empty where `published` has it"},
            {"others", others, "The same figure rebuilt in other ways: as a case of ours"},
            {"bytes", bytes, "Ours, in bytes"},
            {"difference", difference, "Ours against the published figure, signed per cent"},
            {"within_rounding", within_rounding,
             "Further apart than 0.5%, but not than the published last digit"},
            {"grade", grade, "How much of the configuration is the same"},
            {"phase", phase, "Where our peak lies"},
            {"row_url", row_url, "The row that prints it, where the record links to one"},
            {"note", note, "What to know about the published figure"},
            {"differs", differs, "Further apart than 0.5% and the published last digit"},
            {"cause", cause, "Why, in a word"},
            {"explanation", explanation, "Why, in a sentence without its full stop"},
            {"at_peak", at_peak, "What is alive at our peak"},
            {"verdict", verdict, "Of a program: how far ours can be trusted"},
            {"is_bound", is_bound, "The verdict is neither exact nor exact if"},
            {"versions", versions, "The publisher's libraries"},
            {"our_versions", our_versions, "Ours"},
            {"date", date, "When ours was measured"},
            {"measured", measured, "There is a figure of ours"},
            {"reason", reason, "Why there is none"}};
  }
};

struct StepView {
  std::string changed, bytes, change, phase;

  FieldValues fields() const {
    return {{"changed", changed, "What is changed, beside all that was before"},
            {"bytes", bytes, "The peak then, in bytes"},
            {"change", change, "Against the row above, in bytes; empty in the first"},
            {"phase", phase, "Where that peak lies"}};
  }
};

struct StepsView {
  std::string configuration, card;
  std::vector<StepView> steps = {};

  FieldValues fields() const {
    return {{"configuration", configuration, "The publisher's program and its arguments"},
            {"card", card, "The emulated card"},
            {"steps", steps, "From the program to the case of ours of the same figure"}};
  }
};

struct UrlView {
  std::string url;

  FieldValues fields() const { return {{"url", url, "Where (http or https only)"}}; }
};

struct SourceView {
  std::string name;
  std::vector<UrlView> urls;
  std::vector<FigureView> figures = {}, differing = {}, not_measured = {}, computed = {};
  std::vector<StepsView> ways = {};

  FieldValues fields() const {
    return {{"name", name, "Who published the figures"},
            {"urls", urls, "Where: each page that has some of them"},
            {"has_urls", !urls.empty(), "`urls` is not empty"},
            {"figures", figures, "Those that were measured again"},
            {"has_figures", !figures.empty(), "`figures` is not empty"},
            {"differing", differing, "Those of them that differ"},
            {"has_differing", !differing.empty(), "`differing` is not empty"},
            {"ways", ways, "From programs to the cases of ours, one change after another"},
            {"has_ways", !ways.empty(), "`ways` is not empty"},
            {"not_measured", not_measured, "Those whose case did not end ok"},
            {"has_not_measured", !not_measured.empty(), "`not_measured` is not empty"},
            {"computed", computed, "Those that the publisher computed and did not measure"},
            {"has_computed", !computed.empty(), "`computed` is not empty"}};
  }
};

struct GradeView {
  std::string grade, measures, figures, close, near, agree, rounded, differ, largest;

  FieldValues fields() const {
    return {{"grade", grade, "The grade; `all` in the last row"},
            {"measures", measures, "training steps, or operators"},
            {"figures", figures, "How many, each counted once"},
            {"close", close, "Within 0.01%"},
            {"near", near, "Within 0.05%, those included"},
            {"agree", agree, "Within 0.5%, those included"},
            {"rounded", rounded, "Further apart, and within the published last digit"},
            {"differ", differ, "The rest"},
            {"largest", largest, "The largest difference, signed per cent"}};
  }
};

struct CauseView {
  std::string cause, figures, largest;

  FieldValues fields() const {
    return {{"cause", cause, "versions, kernels, workspaces, data, unknown"},
            {"figures", figures, "How many differ for it"},
            {"largest", largest, "The largest difference, signed per cent"}};
  }
};

struct NotRebuiltView {
  std::string source, url, figures, reason;

  FieldValues fields() const {
    return {{"source", source, "Who published the figures"},
            {"url", url, "Where (http or https only)"},
            {"figures", figures, "How many"},
            {"reason", reason, "Why they cannot be measured again here"}};
  }
};

// What a publisher read of whole cards, beside what CUDA gave to the program's processes.
struct DeviceMemoryView {
  std::string card, cards, torch, figures, least, median, most, near, lowest, highest;

  FieldValues fields() const {
    return {{"card", card, "The emulated card that stands for the publisher's"},
            {"cards", cards, "How many of them a run used"},
            {"torch", torch, "The release of PyTorch that ours ran with"},
            {"figures", figures, "How many runs"},
            {"least", least, "Published less ours, in MiB: the least"},
            {"median", median, "Their median"},
            {"most", most, "The most"},
            {"near", near, "How many lie within 2 MiB of the median"},
            {"lowest", lowest, "Ours and the median against the published figure: the lowest, %"},
            {"highest", highest, "The highest"}};
  }
};

// What can be quoted: whole training steps of the same configuration.
struct SummaryView {
  std::string figures, sources, cards, close, near, agree, largest, largest_of, largest_cause;
  std::string most, most_source, most_cards, others, others_close, others_near, others_agree;

  FieldValues fields() const {
    return {{"figures", figures, "How many, each counted once"},
            {"sources", sources, "From how many sources"},
            {"cards", cards, "On how many cards"},
            {"close", close, "Within 0.01%"},
            {"near", near, "Within 0.05%, those included"},
            {"agree", agree, "Within 0.5%, those included"},
            {"largest", largest, "The largest difference, signed per cent"},
            {"largest_of", largest_of, "Of which configuration and source"},
            {"largest_cause", largest_cause,
             "Why, in a word; the last digit, where that is all; empty within 0.5%"},
            {"most", most, "How many the source with the most of them has"},
            {"most_source", most_source, "That source"},
            {"most_cards", most_cards, "On how many kinds of card that source measured"},
            {"others", others, "How many the other sources have; empty where there is no other"},
            {"others_close", others_close, "Of these within 0.01%"},
            {"others_near", others_near, "Of these within 0.05%, those included"},
            {"others_agree", others_agree, "Of these within 0.5%, those included"}};
  }
};

struct PageView {
  std::string figures, source_count, outside_step, dates;
  std::vector<SummaryView> summary;  // one, where there are such figures
  std::vector<GradeView> grades;
  std::vector<CauseView> causes;
  std::vector<SourceView> sources;
  std::vector<NotRebuiltView> not_rebuilt;
  std::vector<DeviceMemoryView> device_memory;

  FieldValues fields() const {
    return {
        {"figures", figures, "How many were measured again, each counted once"},
        {"summary", summary, "Whole training steps of the same configuration"},
        {"source_count", source_count, "From how many sources"},
        {"outside_step", outside_step, "How many of these peaks lie outside the optimizer step"},
        {"dates", dates, "When ours were measured: a day, or the first and the last"},
        {"grades", grades, "Counted by grade"},
        {"causes", causes, "Those that differ, counted by cause"},
        {"has_causes", !causes.empty(), "`causes` is not empty"},
        {"sources", sources, "Row by row, a table a publisher"},
        {"device_memory", device_memory,
         "Whole cards as nvidia-smi showed them, by card and count"},
        {"has_device_memory", !device_memory.empty(), "`device_memory` is not empty"},
        {"not_rebuilt", not_rebuilt, "Figures that are left out"},
        {"has_not_rebuilt", !not_rebuilt.empty(), "`not_rebuilt` is not empty"}};
  }
};

PageView page_view(const Records& records);

}  // namespace peakbench::fidelity

#include "search/sized_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/errors.h"
#include "base/nearest.h"
#include "planning/selection.h"
#include "records/device.h"

namespace peakbench::search {
namespace {

using planning::Kind;

struct AlongRow {
  Along along;
  const char *word, *label, *option;  // option: of a plugin
};

constexpr std::array<AlongRow, 4> kRows{{{Along::kBatch, "batch", "batch size", ""},
                                         {Along::kSequence, "seq", "sequence length", ""},
                                         {Along::kLayers, "layers", "layers", "layers"},
                                         {Along::kRank, "rank", "rank", "rank"}}};

const AlongRow* row_for(Along along) {
  const auto* row = std::ranges::find(kRows, along, &AlongRow::along);
  return row == kRows.end() ? nullptr : row;
}

const planning::Entry* entry_of(const planning::Found& plugins, Kind kind, const std::string& id) {
  for (const auto& plugin : plugins.plugins)
    for (const auto& entry : plugin.entries)
      if (plugin.kind == kind && entry.id == id) return &entry;
  return nullptr;
}

const planning::Option* integer_option(const planning::Entry* entry, const std::string& name) {
  if (entry == nullptr) return nullptr;
  const auto found = std::ranges::find(entry->options, name, &planning::Option::name);
  const bool is_integer =
      found != entry->options.end() && found->type == planning::OptionType::kInteger;
  return is_integer ? &*found : nullptr;
}

std::int64_t whole(std::optional<double> number, std::int64_t otherwise) {
  return number ? static_cast<std::int64_t>(std::llround(*number)) : otherwise;
}

bool is_python(const planning::PlannedCase& planned) {
  return planned.spec.kind == records::CaseKind::kPython;
}

bool has_integer(const records::PluginUse& use, const std::string& name) {
  const auto found = use.options.find(name);
  return found != use.options.end() && found->is_number_integer();
}

// The part of the case whose option is searched along; an option of a function in Python has the
// word for the search.
records::PluginUse* python_part(planning::PlannedCase& planned, Along along) {
  const auto option = word_of(along);
  if (along != Along::kRank) return has_integer(planned.model, option) ? &planned.model : nullptr;
  const auto found = std::ranges::find_if(
      planned.strategies, [&](const auto& use) { return has_integer(use, option); });
  return found == planned.strategies.end() ? nullptr : &*found;
}

// Which values are too large, the function says when it is called.
std::optional<Limits> limits_in_python(planning::PlannedCase planned, Along along,
                                       std::string& why) {
  const auto all = Limits{.first = 1, .last = records::kMostSamples};
  const auto name = records::selection_text(planned.spec.model);
  if (along == Along::kBatch) {
    if (planned.spec.batch_size != records::kUnknownBatch) return all;
    why = fmt::format("{} takes no batch", name);
    return std::nullopt;
  }
  if (python_part(planned, along) != nullptr) return all;
  why = along == Along::kRank ? "no part of the stack has a rank"
                              : fmt::format("{} has no integer option {}", name, word_of(along));
  return std::nullopt;
}

void set_in_python(planning::PlannedCase& planned, Along along, std::int64_t value) {
  const auto option = word_of(along);
  auto& part = *python_part(planned, along);
  part.options[option] = value;
  part.selection.options[option] = value;
  planned.spec.model = planned.model.selection;
  for (std::size_t i = 0; i < planned.strategies.size(); ++i)
    planned.spec.strategies[i] = planned.strategies[i].selection;
}

// The first of the stack that has the option; in both of its forms.
struct PartWithOption {
  const planning::Option* option = nullptr;
  std::size_t use = 0;
};

PartWithOption part_with_rank(const planning::PlannedCase& planned,
                              const planning::Found& plugins) {
  for (std::size_t i = 0; i < planned.strategies.size(); ++i) {
    const auto* entry = entry_of(plugins, Kind::kStrategy, planned.strategies[i].selection.id);
    if (const auto* option = integer_option(entry, "rank")) return {option, i};
  }
  return {};
}

void set_option(records::Selection& selection, const planning::Option& option, std::int64_t value) {
  if (option.default_value == value)
    selection.options.erase(option.name);
  else
    selection.options[option.name] = value;
}

void set_rank(planning::PlannedCase& planned, const planning::Found& plugins, std::int64_t value) {
  const auto part = part_with_rank(planned, plugins);
  auto& use = planned.strategies.at(part.use);
  use.options[part.option->name] = value;
  set_option(use.selection, *part.option, value);
  for (auto& selection : planned.spec.strategies)
    if (selection.id == use.selection.id) set_option(selection, *part.option, value);
}

// Who splits a batch into micro-batches needs a sample for each.
std::int64_t smallest_batch(const planning::PlannedCase& planned, const planning::Found& plugins) {
  std::int64_t least = 1;
  for (const auto& use : planned.strategies) {
    const auto* entry = entry_of(plugins, Kind::kStrategy, use.selection.id);
    const bool splits = entry != nullptr && std::ranges::count(entry->slots, "micro_batches") != 0;
    if (splits && integer_option(entry, "steps") != nullptr && use.options.contains("steps"))
      least = std::max(least, use.options.at("steps").get<std::int64_t>());
  }
  return least;
}

void name_anew(planning::PlannedCase& planned) {
  planned.spec.id = planning::case_id(planned.spec);
  planned.spec.slug = planning::slug(planned.spec.id);
}

planning::PlannedCase with_card_option(planning::PlannedCase planned, const std::string& name,
                                       const std::string& value) {
  auto device = records::device_from(planned.spec.device);
  device.options[name] = value;
  planned.spec.device = records::device_from(records::emulated_device(card_text(device))).id;
  name_anew(planned);
  return planned;
}

Limits limits_of_option(const planning::Option& option) {
  return {.first = std::max<std::int64_t>(1, whole(option.minimum, 1)),
          .last = whole(option.maximum, records::kMostSamples)};
}

}  // namespace

std::string word_of(Along along) {
  const auto* row = row_for(along);
  return row == nullptr ? "" : row->word;
}

std::string label_of(Along along) {
  const auto* row = row_for(along);
  return row == nullptr ? "" : row->label;
}

Along along_from(const std::string& word) {
  std::vector<std::string> words;
  for (const auto& row : kRows) {
    if (word == row.word) return row.along;
    words.emplace_back(row.word);
  }
  throw ConfigError(fmt::format("--largest \"{}\": expected batch, seq, layers or rank{}", word,
                                nearest(word, words) ? suggestion(word, words) : ""));
}

std::optional<Limits> limits_of(const planning::PlannedCase& planned, Along along,
                                const planning::Found& plugins, std::string& why) {
  const auto* model = entry_of(plugins, Kind::kModel, planned.spec.model.id);
  if (along == Along::kNothing) return Limits{};
  if (is_python(planned)) return limits_in_python(planned, along, why);
  if (along == Along::kBatch)
    return Limits{.first = smallest_batch(planned, plugins), .last = records::kMostSamples};
  if (along == Along::kSequence) {
    if (planned.spec.sequence_length) return Limits{.first = 1, .last = records::kMostSamples};
    why = fmt::format("{} has no sequence", planned.spec.model.id);
    return std::nullopt;
  }
  if (along == Along::kLayers) {
    if (const auto* option = integer_option(model, "layers")) return limits_of_option(*option);
    why = fmt::format("{} has no option layers", planned.spec.model.id);
    return std::nullopt;
  }
  if (const auto* option = part_with_rank(planned, plugins).option)
    return limits_of_option(*option);
  why = "no part of the stack has a rank";
  return std::nullopt;
}

planning::PlannedCase with_value(planning::PlannedCase planned, Along along, std::int64_t value,
                                 const planning::Found& plugins) {
  if (along == Along::kBatch) {
    if (auto& global = planned.spec.global_batch_size)
      global = *global / planned.spec.batch_size * value;
    planned.spec.batch_size = value;
  }
  if (is_python(planned)) {
    if (along != Along::kBatch && along != Along::kNothing) set_in_python(planned, along, value);
    name_anew(planned);
    return planned;
  }
  if (along == Along::kSequence) planned.spec.sequence_length = value;
  if (along == Along::kLayers) {
    const auto* entry = entry_of(plugins, Kind::kModel, planned.spec.model.id);
    const auto* option = integer_option(entry, "layers");
    planned.model.options[option->name] = value;
    set_option(planned.model.selection, *option, value);
    set_option(planned.spec.model, *option, value);
  }
  if (along == Along::kRank) set_rank(planned, plugins, value);
  name_anew(planned);
  return planned;
}

planning::PlannedCase with_memory(planning::PlannedCase planned, std::int64_t bytes) {
  return with_card_option(std::move(planned), "memory", fmt::format("{}B", bytes));
}

planning::PlannedCase with_context(planning::PlannedCase planned, std::int64_t bytes) {
  constexpr std::int64_t kMiB = 1 << 20;
  return with_card_option(
      std::move(planned), "context",
      bytes % kMiB == 0 ? fmt::format("{}MiB", bytes / kMiB) : fmt::format("{}B", bytes));
}

}  // namespace peakbench::search

#include "reports/analysis/parts.h"

#include <map>
#include <tuple>

#include "files/file.h"
#include "json/fields.h"
#include "result/run_paths.h"
#include "trace/alive.h"
#include "trace/maxima.h"
#include "trace/trace_file.h"

namespace peakbench::analysis {
namespace {

using Key = std::tuple<std::string, std::string, std::string, std::string>;

void add_parts(std::vector<Part>& parts, const std::string& phase, const trace::Alive& alive) {
  std::map<Key, Part> sums;
  for (const auto& found : alive.allocations) {
    const std::string category = trace::to_string(found.category);
    const std::string allocated_in = trace::to_string(found.phase);
    auto& part = sums[{category, found.module, found.op, allocated_in}];
    part.phase = phase;
    part.allocated_in = allocated_in;
    part.category = category;
    part.module = found.module;
    part.op = found.op;
    part.requested_bytes += found.requested_bytes;
    part.block_bytes += found.block_bytes;
  }
  for (auto& [key, part] : sums) parts.push_back(std::move(part));
}

// Names to indices, in order of appearance.
class Words {
 public:
  std::size_t index(const std::string& word) {
    const auto [at, fresh] = indices_.try_emplace(word, words_.size());
    if (fresh) words_.push_back(word);
    return at->second;
  }
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::map<std::string, std::size_t> indices_;
  std::vector<std::string> words_;
};

constexpr std::size_t kColumns = 7;

Part part_from_json(const nlohmann::json& row, const std::vector<std::string>& words,
                    const std::string& pointer) {
  if (!row.is_array() || row.size() != kColumns)
    throw FieldError(pointer, "expected a list of seven numbers, got " + describe(row));
  const auto number = [&](std::size_t column) {
    return read_value<std::int64_t>(row[column], pointer + "/" + std::to_string(column));
  };
  const auto word = [&](std::size_t column) {
    const auto index = number(column);
    if (index < 0 || static_cast<std::size_t>(index) >= words.size())
      throw FieldError(pointer + "/" + std::to_string(column),
                       "expected an index in words, got " + std::to_string(index));
    return words[static_cast<std::size_t>(index)];
  };
  return {word(0), word(1), word(2), word(3), word(4), number(5), number(6)};
}

// What is alive where each phase is highest, in order of phases; without those that have nothing.
template <class Visit>
void visit_maxima(const trace::Trace& trace, Visit visit) {
  const auto lifetimes = trace::lifetimes(trace);
  for (const auto& maximum : trace::maxima(trace, lifetimes).phases)
    if (maximum && maximum->allocated_bytes > 0)
      visit(trace::to_string(maximum->phase), trace::alive_at(trace, lifetimes, maximum->event));
}

}  // namespace

std::map<std::string, trace::Alive> alive_at_maxima(const trace::Trace& trace) {
  std::map<std::string, trace::Alive> alive;
  visit_maxima(trace, [&](const char* phase, trace::Alive found) {
    alive.emplace(phase, std::move(found));
  });
  return alive;
}

std::vector<Part> parts_of(const trace::Trace& trace) {
  std::vector<Part> parts;
  visit_maxima(
      trace, [&](const char* phase, const trace::Alive& found) { add_parts(parts, phase, found); });
  return parts;
}

std::optional<std::vector<Part>> parts_of_case(const result::CaseResult& result,
                                               const std::string& folder) {
  const auto path = result::trace_file(result, folder);
  if (path.empty() || !files::is_there(path)) return std::nullopt;
  return parts_of(trace::read_trace(path));
}

std::vector<CaseParts> parts_of_run(const result::Run& run, const std::string& folder,
                                    std::vector<std::string>* notes) {
  std::vector<CaseParts> all;
  for (const auto& result : run.cases) {
    try {
      if (auto parts = parts_of_case(result, folder))
        all.push_back({result.spec.id, std::move(*parts)});
    } catch (const std::runtime_error& error) {
      if (notes) notes->push_back(result.spec.id + ": " + error.what());
    }
  }
  return all;
}

nlohmann::json to_json(const std::vector<CaseParts>& cases) {
  Words words;
  auto list = nlohmann::json::array();
  for (const auto& one : cases) {
    auto rows = nlohmann::json::array();
    for (const auto& part : one.parts)
      rows.push_back({words.index(part.phase), words.index(part.allocated_in),
                      words.index(part.category), words.index(part.module), words.index(part.op),
                      part.requested_bytes, part.block_bytes});
    list.push_back({{"id", one.case_id}, {"parts", std::move(rows)}});
  }
  return {{"words", words.words()}, {"cases", std::move(list)}};
}

std::vector<CaseParts> parts_from_json(const nlohmann::json& json) {
  const Fields fields(json);
  const auto words = fields.get<std::vector<std::string>>("words");
  std::vector<CaseParts> cases;
  fields.each("cases", [&](const Fields& one) {
    CaseParts parts{one.get<std::string>("id"), {}};
    const auto& rows = one.require("parts");
    if (!rows.is_array())
      throw FieldError(one.pointer("parts"), "expected a list, got " + describe(rows));
    for (std::size_t i = 0; i < rows.size(); ++i)
      parts.parts.push_back(
          part_from_json(rows[i], words, one.pointer("parts") + "/" + std::to_string(i)));
    cases.push_back(std::move(parts));
  });
  return cases;
}

}  // namespace peakbench::analysis

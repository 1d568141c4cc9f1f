#include "reports/analysis/causes.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "base/fields.h"
#include "base/file.h"
#include "records/run_files.h"
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

}  // namespace

std::map<std::string, trace::Alive> alive_at_maxima(const trace::Trace& trace) {
  const auto lifetimes = trace::lifetimes(trace);
  std::map<std::string, trace::Alive> alive;
  for (const auto& maximum : trace::maxima(trace, lifetimes).phases)
    if (maximum && maximum->allocated_bytes > 0)
      alive.emplace(trace::to_string(maximum->phase),
                    trace::alive_at(trace, lifetimes, maximum->event));
  return alive;
}

std::vector<Part> parts_of(const trace::Trace& trace) {
  const auto alive = alive_at_maxima(trace);
  std::vector<Part> parts;
  for (std::size_t i = 0; i < trace::kPhaseCount; ++i)
    if (const auto found = alive.find(trace::to_string(static_cast<trace::Phase>(i)));
        found != alive.end())
      add_parts(parts, found->first, found->second);
  return parts;
}

std::vector<CaseParts> parts_of_run(const records::Run& run, const std::string& folder,
                                    std::vector<std::string>* notes) {
  std::vector<CaseParts> all;
  for (const auto& result : run.cases) {
    try {
      const auto path = records::trace_file(result, folder);
      if (!path.empty() && files::is_there(path))
        all.push_back({result.spec.id, parts_of(trace::read_trace(path))});
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

namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

bool is_optimizer_state(const std::string& category) {
  return category == trace::to_string(trace::Category::kOptimizerState);
}

// What goes together: moments of all parameters; else what is in the layers of one kind; what is in
// no module by its operator.
std::string pattern_of(const Alike& one) {
  if (is_optimizer_state(one.category) && !one.name.empty()) {
    const auto dot = one.name.rfind('.');
    return dot == std::string::npos ? one.name : "*" + one.name.substr(dot);
  }
  // A library's workspace is the same wherever it was first needed.
  if (one.category == trace::to_string(trace::Category::kWorkspace)) return one.name;
  if (!one.module.empty()) return layer_pattern(one.module);
  return one.op.empty() ? one.name : one.op;
}

// Of a difference, grown or shrunk: what it is sorted by.
std::pair<std::int64_t, std::int64_t> magnitude(std::int64_t blocks, std::int64_t requested) {
  return {std::abs(blocks), std::abs(requested)};
}

void add_held(Held& sum, const Held& held) {
  sum.tensors += held.tensors;
  sum.requested_bytes += held.requested_bytes;
  sum.block_bytes += held.block_bytes;
  sum.dtypes.insert(held.dtypes.begin(), held.dtypes.end());
  sum.shapes.insert(held.shapes.begin(), held.shapes.end());
}

Alike alike(const trace::AliveAllocation& one, std::int64_t count) {
  return {trace::to_string(one.phase),
          trace::to_string(one.category),
          one.module,
          one.op,
          one.name,
          one.shape,
          one.dtype,
          one.requested_bytes,
          one.block_bytes,
          count};
}

}  // namespace

void Fold::Common::add(const std::string& one) {
  if (!is_set) text = one;
  differs = differs || (is_set && one != text);
  is_set = true;
}

void Fold::Common::add(const Common& other) {
  if (other.is_set) add(other.text);
  differs = differs || other.differs;
}

Fold::Fold(const trace::Alive& alive) {
  for (const auto& one : alive.allocations) add(alike(one, 1));
}

void Fold::add(const Alike& one) {
  auto& group = groups_[{one.category, pattern_of(one)}];
  group.module.add(one.module);
  group.name.add(one.name);
  group.op.add(one.op);
  auto& held = one.count < 0 ? group.base : group.now;
  const auto count = std::abs(one.count);
  held.tensors += count;
  held.requested_bytes += count * one.requested_bytes;
  held.block_bytes += count * one.block_bytes;
  if (!one.dtype.empty()) held.dtypes.insert(one.dtype);
  if (!one.shape.empty()) held.shapes.insert(one.shape);
}

// A tensor's own name says most. Where they differ, its state's names have the pattern in common.
Cause Fold::cause_of(const std::string& category, const std::string& pattern, const Group& group) {
  const auto name = group.name.shared(), module = group.module.shared();
  const bool is_named = group.name.differs || !name.empty();
  std::string where = name;
  if (where.empty() && !(is_optimizer_state(category) && group.name.differs)) where = module;
  if (where.empty() && (is_named || group.module.differs)) where = pattern;
  if (where.empty() && group.module.differs) where = "several modules";
  return {category, where, is_named ? "" : group.op.shared(), group.base, group.now};
}

std::vector<CategoryCauses> Fold::causes() const {
  std::map<std::string, CategoryCauses> categories;
  for (const auto& [key, group] : groups_) {
    auto cause = cause_of(key.first, key.second, group);
    const auto blocks = cause.block_difference(), requested = cause.requested_difference();
    if (blocks == 0 && requested == 0) continue;
    auto& category = categories[key.first];
    category.category = key.first;
    category.block_difference += blocks;
    category.requested_difference += requested;
    category.causes.push_back(std::move(cause));
  }
  std::vector<CategoryCauses> found;
  for (auto& [name, category] : categories) {
    std::ranges::stable_sort(category.causes, std::ranges::greater(), [](const Cause& cause) {
      return magnitude(cause.block_difference(), cause.requested_difference());
    });
    found.push_back(std::move(category));
  }
  std::ranges::stable_sort(found, std::ranges::greater(), [](const CategoryCauses& category) {
    return magnitude(category.block_difference, category.requested_difference);
  });
  return found;
}

std::vector<CategoryCauses> Fold::against(const Fold& base) const {
  Fold both = *this;
  for (const auto& [key, group] : base.groups_) {
    auto& together = both.groups_[key];
    together.module.add(group.module);
    together.name.add(group.name);
    together.op.add(group.op);
    add_held(together.base, group.now);
  }
  return both.causes();
}

std::string layer_pattern(const std::string& module) {
  for (std::size_t begin = 0; begin < module.size();) {
    const auto end = std::min(module.find('.', begin), module.size());
    auto digits = end;
    while (digits > begin && is_digit(module[digits - 1])) --digits;
    if (digits < end) return module.substr(0, digits) + "*";
    begin = end + 1;
  }
  return module;
}

std::vector<Alike> differences_of(const trace::Alive& base, const trace::Alive& now) {
  using Like = std::tuple<std::string, std::string, std::string, std::string, std::string,
                          std::int64_t, std::int64_t>;
  std::map<Like, Alike> likes;
  const auto count = [&](const trace::Alive& alive, std::int64_t sign) {
    for (const auto& allocation : alive.allocations) {
      auto one = alike(allocation, sign);
      auto& like = likes[{one.allocated_in, one.category, one.module, one.op, one.name,
                          one.requested_bytes, one.block_bytes}];
      one.count += like.count;
      like = std::move(one);
    }
  };
  count(base, -1);
  count(now, +1);
  std::vector<Alike> found;
  for (auto& [like, one] : likes)
    if (one.count != 0) found.push_back(std::move(one));
  std::ranges::stable_sort(found, [](const Alike& a, const Alike& b) {
    return a.count * a.block_bytes > b.count * b.block_bytes;
  });
  return found;
}

std::vector<CategoryCauses> causes_of(const std::vector<Alike>& alike) {
  Fold fold;
  for (const auto& one : alike) fold.add(one);
  return fold.causes();
}

std::vector<CategoryCauses> causes_of(const trace::Alive& alive) { return Fold(alive).causes(); }

std::vector<Part> differences_of(const std::vector<Part>& base, const std::vector<Part>& now,
                                 const std::string& phase_in_base, const std::string& phase) {
  std::map<Key, Part> differences;
  const auto count = [&](const std::vector<Part>& parts, const std::string& of, std::int64_t sign) {
    for (const auto& part : parts) {
      if (part.phase != of) continue;
      auto& sum = differences[{part.allocated_in, part.category, part.module, part.op}];
      sum = {phase,
             part.allocated_in,
             part.category,
             part.module,
             part.op,
             sum.requested_bytes + sign * part.requested_bytes,
             sum.block_bytes + sign * part.block_bytes};
    }
  };
  count(base, phase_in_base, -1);
  count(now, phase, +1);
  std::vector<Part> found;
  for (auto& [key, part] : differences)
    if (part.requested_bytes != 0 || part.block_bytes != 0) found.push_back(std::move(part));
  return found;
}

std::vector<CategoryCauses> causes_of(const std::vector<Part>& base, const std::vector<Part>& now,
                                      const std::string& phase_in_base, const std::string& phase) {
  Fold fold;
  for (const auto& part : differences_of(base, now, phase_in_base, phase))
    fold.add({part.allocated_in, part.category, part.module, part.op, "", "", "",
              part.requested_bytes, part.block_bytes, 1});
  auto found = fold.causes();
  for (auto& category : found)
    for (auto& cause : category.causes) cause.base.tensors = cause.now.tensors = 0;
  return found;
}

}  // namespace peakbench::analysis

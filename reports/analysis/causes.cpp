#include "reports/analysis/causes.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>
#include <utility>

namespace peakbench::analysis {
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

// The larger difference, grown or shrunk.
bool more(std::int64_t blocks, std::int64_t requested, std::int64_t other_blocks,
          std::int64_t other_requested) {
  return std::pair(std::abs(blocks), std::abs(requested)) >
         std::pair(std::abs(other_blocks), std::abs(other_requested));
}

void add_held(Held& sum, const Held& held) {
  sum.tensors += held.tensors;
  sum.requested_bytes += held.requested_bytes;
  sum.block_bytes += held.block_bytes;
  sum.dtypes.insert(held.dtypes.begin(), held.dtypes.end());
  sum.shapes.insert(held.shapes.begin(), held.shapes.end());
}

void forget_numbers(std::vector<CategoryCauses>& categories) {
  for (auto& category : categories)
    for (auto& cause : category.causes) cause.base.tensors = cause.now.tensors = 0;
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
    std::ranges::stable_sort(category.causes, [](const Cause& a, const Cause& b) {
      return more(a.block_difference(), a.requested_difference(), b.block_difference(),
                  b.requested_difference());
    });
    found.push_back(std::move(category));
  }
  std::ranges::stable_sort(found, [](const CategoryCauses& a, const CategoryCauses& b) {
    return more(a.block_difference, a.requested_difference, b.block_difference,
                b.requested_difference);
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

std::vector<CategoryCauses> causes_of(const std::vector<Part>& base, const std::vector<Part>& now,
                                      const std::string& phase_in_base, const std::string& phase) {
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  std::map<Key, std::pair<std::int64_t, std::int64_t>> sums;  // asked for, of blocks
  const auto count = [&](const std::vector<Part>& parts, const std::string& of, std::int64_t sign) {
    for (const auto& part : parts) {
      if (part.phase != of) continue;
      auto& sum = sums[{part.allocated_in, part.category, part.module, part.op}];
      sum.first += sign * part.requested_bytes;
      sum.second += sign * part.block_bytes;
    }
  };
  count(base, phase_in_base, -1);
  count(now, phase, +1);
  Fold fold;
  for (const auto& [key, sum] : sums) {
    const auto& [allocated_in, category, module, op] = key;
    if (sum.first == 0 && sum.second == 0) continue;
    fold.add({allocated_in, category, module, op, "", "", "", sum.first, sum.second, 1});
  }
  auto found = fold.causes();
  forget_numbers(found);
  return found;
}

}  // namespace peakbench::analysis

#include "trace/alive.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <unordered_map>

namespace peakbench::trace {
namespace {

// A tree is walked level by level, by us and by a browser. Models have ten levels; what lies below
// the last one kept goes by the rest of its path.
constexpr int kMostLevels = 64;
constexpr const char* kNoModule = "(no module)";
constexpr const char* kRootModule = "(root)";
constexpr const char* kNoOperator = "(no operator)";

std::string parent(const std::string& path) {
  const auto dot = path.rfind('.');
  return dot == std::string::npos ? std::string() : path.substr(0, dot);
}

// `encoder.ln.weight` is in `encoder.ln`, its state `encoder.ln.weight.exp_avg` too; `weight` is in
// the root. Inputs, and states without a parameter's name, are nowhere.
std::string module_of_name(const Name& name) {
  if (name.role == Role::kInput) return {};
  const auto owner = name.role == Role::kOptimizerState ? parent(name.name) : name.name;
  if (owner.empty()) return {};
  const auto module = parent(owner);
  return module.empty() ? kRootModule : module;
}

AliveAllocation describe(const Trace& trace, const Lifetime& lifetime) {
  const auto& event = trace.events[lifetime.first];
  AliveAllocation found;
  found.event = lifetime.first;
  found.category = lifetime.category;
  found.phase = event.phase;
  found.step = event.step;
  found.requested_bytes = event.requested_bytes;
  found.block_bytes = event.block_bytes;
  found.op = word_at(trace.operators, event.op);
  if (lifetime.name != kNone) {
    const auto& name = trace.names[static_cast<std::size_t>(lifetime.name)];
    found.name = name.name;
    found.shape = name.shape;
    found.dtype = name.dtype;
  }
  if (event.module != kNone) {
    found.module = word_at(trace.modules, event.module);
    if (found.module.empty()) found.module = kRootModule;
  } else if (lifetime.name != kNone) {
    found.module = module_of_name(trace.names[static_cast<std::size_t>(lifetime.name)]);
  }
  return found;
}

double share_of(std::int64_t bytes, std::int64_t all) {
  return all == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(all);
}

// Grows the tree from allocations; every node knows its children by kind and label.
class Tree {
 public:
  Tree() : nodes_(1) {}

  void add(const AliveAllocation& allocation, std::size_t index) {
    auto node = module_node(allocation.module);
    node = child(node, AliveNode::Kind::kOperator,
                 allocation.op.empty() ? kNoOperator : allocation.op);
    AliveNode leaf;
    leaf.kind = AliveNode::Kind::kAllocation;
    leaf.label = allocation.name.empty() ? to_string(allocation.category) : allocation.name;
    leaf.bytes = allocation.block_bytes;
    leaf.share = allocation.share;
    leaf.allocations = 1;
    leaf.allocation = index;
    nodes_[node].node.children.push_back(std::move(leaf));
  }

  // Sums from the leaves up, the largest first.
  AliveNode finish(std::int64_t all_bytes) { return finish(0, all_bytes); }

 private:
  struct Node {
    AliveNode node;
    std::vector<std::size_t> inner;
    std::unordered_map<std::string, std::size_t> by_label;  // with the kind in front
  };

  std::size_t module_node(const std::string& path) {
    if (path.empty()) return child(0, AliveNode::Kind::kModule, kNoModule);
    if (path == kRootModule) return child(0, AliveNode::Kind::kModule, kRootModule);
    std::size_t node = 0, begin = 0;
    for (int level = 1; begin <= path.size(); ++level) {
      const auto dot = level < kMostLevels ? path.find('.', begin) : std::string::npos;
      const auto end = std::min(dot, path.size());
      node = child(node, AliveNode::Kind::kModule, path.substr(begin, end - begin));
      begin = end + 1;
    }
    return node;
  }

  std::size_t child(std::size_t parent, AliveNode::Kind kind, const std::string& label) {
    const auto key = (kind == AliveNode::Kind::kModule ? 'm' : 'o') + label;
    const auto [at, fresh] = nodes_[parent].by_label.try_emplace(key, nodes_.size());
    const auto index = at->second;
    if (fresh) {
      nodes_[parent].inner.push_back(index);
      nodes_.emplace_back();
      nodes_.back().node.kind = kind;
      nodes_.back().node.label = label;
    }
    return index;
  }

  AliveNode finish(std::size_t index, std::int64_t all_bytes) {
    auto node = std::move(nodes_[index].node);
    for (const auto inner : nodes_[index].inner) node.children.push_back(finish(inner, all_bytes));
    for (const auto& child : node.children) {
      node.bytes += child.bytes;
      node.allocations += child.allocations;
    }
    node.share = share_of(node.bytes, all_bytes);
    std::ranges::stable_sort(node.children, std::greater{}, &AliveNode::bytes);
    return node;
  }

  std::vector<Node> nodes_;
};

}  // namespace

Alive alive_at(const Trace& trace, const std::vector<Lifetime>& lifetimes, std::uint64_t event,
               int space) {
  if (event >= trace.events.size()) throw std::out_of_range("alive_at: no such event");
  space = space_or_own(trace, space);
  Alive alive;
  alive.event = event;
  alive.phase = trace.events[event].phase;
  alive.step = trace.events[event].step;
  for (const auto& lifetime : lifetimes) {
    if (lifetime.first > event) break;
    if (lifetime.last <= event || trace.events[lifetime.first].space != space) continue;
    alive.allocations.push_back(describe(trace, lifetime));
    alive.allocated_bytes += alive.allocations.back().block_bytes;
    alive.requested_bytes += alive.allocations.back().requested_bytes;
  }
  std::ranges::stable_sort(alive.allocations, std::greater{}, &AliveAllocation::block_bytes);
  Tree tree;
  for (std::size_t i = 0; i < alive.allocations.size(); ++i) {
    alive.allocations[i].share = share_of(alive.allocations[i].block_bytes, alive.allocated_bytes);
    tree.add(alive.allocations[i], i);
  }
  alive.root = tree.finish(alive.allocated_bytes);
  return alive;
}

}  // namespace peakbench::trace

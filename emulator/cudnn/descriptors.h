// What a program puts into the descriptors of cuDNN's graph interface, as far as workspaces hang on
// it: the tensors of operations, the operations of a graph, the graph that a configuration or a
// plan is of.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace peakbench::emulator::cudnn {

struct Descriptor {
  int type = 0;   // DescriptorType
  int mode = -1;  // of a pointwise operation or a reduction: which one it is
  // Of a tensor.
  int data_type = -1;
  std::vector<std::int64_t> dimensions;
  bool is_virtual = false;  // within the graph: no memory of the caller's
  // Other descriptors in it, by attribute: an operation's tensors, a graph's operations; null for
  // one that is not known.
  std::map<int, std::vector<std::shared_ptr<const Descriptor>>> holds;
  // The graph that it is of: a plan's, a configuration's from the heuristics, theirs. Null where
  // the program chose the engine or asked for some of the card: what comes of that is not known.
  std::shared_ptr<const Descriptor> graph;
  bool is_narrowed = false;  // heuristics: for some of the card's multiprocessors

  // The one descriptor under an attribute; null without it.
  const Descriptor* at(int attribute) const {
    const auto found = holds.find(attribute);
    return found == holds.end() || found->second.empty() ? nullptr : found->second.front().get();
  }
};

// By handle, each from any thread; nothing happens to a handle that is not known. What a descriptor
// holds it shares: programs fill one before they put it into another.
void create(void* handle, int type);
void destroy(void* handle);
// cudnnBackendSetAttribute: `elements` are `count` of that type.
void set(void* handle, int attribute, int type, std::int64_t count, const void* elements);
// `to` is a configuration that comes out of the heuristics `from`: of the same graph.
void give_graph(void* from, void* to);
std::shared_ptr<const Descriptor> graph_of(void* handle);

}  // namespace peakbench::emulator::cudnn

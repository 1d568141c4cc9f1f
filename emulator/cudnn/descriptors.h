// What a program puts into the descriptors of cuDNN's graph interface, as far as workspaces hang on
// it: the tensors of operations, the operations of a graph, the graph that an engine, a
// configuration or a plan is of.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace peakbench::emulator::cudnn {

struct Descriptor {
  int type = 0;  // DescriptorType
  // Of a tensor.
  int data_type = 0;
  std::vector<std::int64_t> dimensions;
  bool is_virtual = false;  // within the graph: no memory of the caller's
  // Other descriptors in it, by attribute: an operation's tensors, a graph's operations.
  std::map<int, std::vector<std::shared_ptr<const Descriptor>>> holds;
  // The graph that it is of: an engine's, a configuration's, a plan's, the heuristics'.
  std::shared_ptr<const Descriptor> graph;

  // The one descriptor under an attribute; null without it.
  const Descriptor* at(int attribute) const {
    const auto found = holds.find(attribute);
    return found == holds.end() || found->second.empty() ? nullptr : found->second.front().get();
  }
};

// By handle, each from any thread. Handles that are not known are nobody's: nothing happens.
void create(void* handle, int type);
void destroy(void* handle);
// cudnnBackendSetAttribute: `elements` are `count` of that type.
void set(void* handle, int attribute, int type, std::int64_t count, const void* elements);
// `to` is a configuration or an engine that comes out of `from`: of the same graph.
void give_graph(void* from, void* to);
std::shared_ptr<const Descriptor> graph_of(void* handle);

}  // namespace peakbench::emulator::cudnn

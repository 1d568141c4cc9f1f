#include "cudnn/graph.h"

#include <mutex>
#include <unordered_map>

namespace peakbench::emulator::cudnn {
namespace {

struct Registry {
  std::mutex mutex;
  // A descriptor that another holds outlives its handle: callers destroy it then.
  std::unordered_map<void*, std::shared_ptr<Descriptor>> of_handle;

  std::shared_ptr<Descriptor> find(void* handle) {
    const auto found = of_handle.find(handle);
    return found == of_handle.end() ? nullptr : found->second;
  }
};

Registry& registry() {
  static auto* const registry = new Registry;
  return *registry;
}

void hold(Descriptor& descriptor, int attribute, std::int64_t count, const void* elements) {
  auto& held = descriptor.holds[attribute];
  held.clear();
  for (std::int64_t i = 0; i < count; ++i)
    held.push_back(registry().find(static_cast<void* const*>(elements)[i]));
  if (attribute == kHeuristicsGraph) descriptor.graph = held.front();
  if (attribute == kPlanConfig && held.front()) {
    descriptor.graph = held.front()->graph;
    descriptor.is_second = held.front()->is_second;
  }
}

std::vector<std::int64_t>* sizes_under(Descriptor& descriptor, int attribute) {
  switch (attribute) {
    case kTensorDimensions:
      return &descriptor.dimensions;
    case kTensorStrides:
      return &descriptor.strides;
    case kConvolutionStrides:
      return &descriptor.convolution_strides;
    case kConvolutionPaddings:
      return &descriptor.paddings;
    case kConvolutionDilations:
      return &descriptor.dilations;
    default:
      return nullptr;
  }
}

}  // namespace

void create(void* handle, int type) {
  auto made = std::make_shared<Descriptor>();
  made->type = type;
  std::lock_guard lock(registry().mutex);
  registry().of_handle[handle] = std::move(made);
}

void destroy(void* handle) {
  std::lock_guard lock(registry().mutex);
  registry().of_handle.erase(handle);
}

void set(void* handle, int attribute, int type, std::int64_t count, const void* elements) {
  if (!elements || count <= 0) return;
  std::lock_guard lock(registry().mutex);
  const auto descriptor = registry().find(handle);
  if (!descriptor) return;
  if (type == kTypeDescriptor) {
    hold(*descriptor, attribute, count, elements);
  } else if (attribute == kHeuristicsMultiprocessors) {
    descriptor->is_narrowed = true;
  } else if (auto* sizes = type == kTypeInt64 ? sizes_under(*descriptor, attribute) : nullptr) {
    const auto* given = static_cast<const std::int64_t*>(elements);
    sizes->assign(given, given + count);
  } else if (attribute == kTensorDataType && type == kTypeDataType) {
    descriptor->data_type = *static_cast<const int*>(elements);
  } else if ((attribute == kPointwiseMode && type == kTypePointwiseMode) ||
             (attribute == kReductionOperator && type == kTypeReductionOperator)) {
    descriptor->mode = *static_cast<const int*>(elements);
  } else if (attribute == kTensorIsVirtual && type == kTypeBoolean) {
    descriptor->is_virtual = *static_cast<const bool*>(elements);
  }
}

void give_graph(void* from, void* to, bool is_second) {
  std::lock_guard lock(registry().mutex);
  const auto source = registry().find(from);
  const auto target = registry().find(to);
  if (!source || !target || source->is_narrowed) return;
  target->graph = source->graph;
  target->is_second = is_second;
}

bool is_second(void* handle) {
  std::lock_guard lock(registry().mutex);
  const auto found = registry().find(handle);
  return found && found->is_second;
}

std::shared_ptr<const Descriptor> graph_of(void* handle) {
  std::lock_guard lock(registry().mutex);
  const auto found = registry().find(handle);
  return found ? found->graph : nullptr;
}

}  // namespace peakbench::emulator::cudnn

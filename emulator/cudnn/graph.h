#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace peakbench::emulator::cudnn {

// Numbers of cuDNN's graph interface (cudnn_graph.h) that are used.

// cudnnBackendDescriptorType_t
enum DescriptorType {
  kConvolutionForward = 10,
  kConvolutionBackwardWeight = 11,
  kConvolutionBackwardData = 12,
  kPointwiseOperation = 13,
  kMatmulOperation = 19,
  kReductionOperation = 22,
  kReshapeOperation = 31,
  kRngOperation = 33,
  kSdpaForwardOperation = 41,
};

// cudnnPointwiseMode_t
enum PointwiseMode {
  kAdd = 0,
  kMultiply = 1,
  kDivide = 6,
  kSubtract = 9,
  kExponential = 13,
  kLogarithm = 15,
  kIdentity = 21,
  kGreaterOrEqual = 303,
  kIndex = 501,
  kSelect = 601,
};

// cudnnReduceTensorOp_t
enum ReductionMode { kSum = 0, kMaximum = 3 };

// cudnnBackendAttributeName_t
enum Attribute {
  kPointwiseMode = 0,
  kConvolutionDilations = 102,
  kConvolutionStrides = 103,
  kConvolutionPaddings = 105,  // in front; PyTorch's are the same behind
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kHeuristicsMultiprocessors = 203,
  kConfigEngine = 300,
  kConfigKnobChoices = 302,
  kConfigWorkspaceBytes = 303,
  kConfigSharedMemoryBytes = 304,
  kPlanConfig = 401,
  kPlanWorkspaceBytes = 402,
  kForwardConvolution = 702,
  kForwardWeight = 703,
  kForwardInput = 704,
  kForwardOutput = 705,
  kBackwardDataConvolution = 708,
  kBackwardDataWeight = 709,
  kBackwardDataInput = 710,
  kBackwardDataOutput = 711,
  kBackwardWeightConvolution = 714,
  kBackwardWeightWeight = 715,
  kBackwardWeightInput = 716,
  kBackwardWeightOutput = 717,
  kPointwiseDescriptor = 750,
  kGraphOperations = 801,
  kGraphEngineCount = 802,
  kTensorDataType = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorIsVirtual = 907,
  kTensorRaggedOffset = 913,
  kEngineGraph = 1300,
  kEngineIndex = 1301,
  kEngineKnobs = 1302,
  kEngineNumericalNotes = 1303,
  kEngineBehaviorNotes = 1305,
  kMatmulA = 1520,
  kMatmulB = 1521,
  kMatmulDescriptor = 1523,
  kReductionOperator = 1600,
  kReductionX = 1610,
  kReductionY = 1611,
  kReductionDescriptor = 1612,
  kRngDescriptor = 2312,
  kSdpaForwardQuery = 2800,
  kSdpaForwardKey = 2801,
  kSdpaForwardValue = 2802,
};

// cudnnBackendAttributeType_t
enum AttributeType {
  kTypeDataType = 1,
  kTypeBoolean = 2,
  kTypeInt64 = 3,
  kTypePointwiseMode = 14,
  kTypeDescriptor = 15,
  kTypeReductionOperator = 18,
};

// cudnnDataType_t
enum DataType { kFloat = 0, kHalf = 2, kBFloat16 = 9 };

// The part of descriptors of cuDNN's graph interface that decides workspaces: tensors of
// operations, operations of a graph, the graph of a configuration or plan.

struct Descriptor {
  int type = 0;   // DescriptorType
  int mode = -1;  // of a pointwise operation or a reduction: which one it is
  // Of a tensor.
  int data_type = -1;
  std::vector<std::int64_t> dimensions, strides;
  bool is_virtual = false;  // within the graph: no memory of the caller's
  // Of a convolution.
  std::vector<std::int64_t> convolution_strides, paddings, dilations;
  // Other descriptors in it, by attribute: an operation's tensors, a graph's operations; null for
  // an unknown one.
  std::map<int, std::vector<std::shared_ptr<const Descriptor>>> holds;
  // The graph of a plan, or of a configuration from the heuristics. Null if the program chose the
  // engine or limited the card: the result is then unknown.
  std::shared_ptr<const Descriptor> graph;
  bool is_narrowed = false;  // heuristics: for some of the card's multiprocessors
  bool is_second = false;    // a configuration, or a plan: of the second choice

  // The one descriptor under an attribute; null without it.
  const Descriptor* at(int attribute) const {
    const auto found = holds.find(attribute);
    return found == holds.end() || found->second.empty() ? nullptr : found->second.front().get();
  }
};

// By handle, each from any thread; unknown handles are ignored. Descriptors share their contents:
// programs fill one before they put it into another.
void create(void* handle, int type);
void destroy(void* handle);
// cudnnBackendSetAttribute: `elements` are `count` of that type.
void set(void* handle, int attribute, int type, std::int64_t count, const void* elements);
// `to` is a configuration that comes out of the heuristics `from`: of the same graph.
void give_graph(void* from, void* to, bool is_second = false);
std::shared_ptr<const Descriptor> graph_of(void* handle);
bool is_second(void* handle);

}  // namespace peakbench::emulator::cudnn

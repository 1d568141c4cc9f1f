// cuDNN's graph interface by numbers, as far as the stand-in reads them (cudnn_graph.h).
#pragma once

namespace peakbench::emulator::cudnn {

// cudnnBackendDescriptorType_t
enum DescriptorType {
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
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kHeuristicsMultiprocessors = 203,
  kConfigEngine = 300,
  kConfigKnobChoices = 302,
  kConfigWorkspaceBytes = 303,
  kConfigSharedMemoryBytes = 304,
  kPlanConfig = 401,
  kPlanWorkspaceBytes = 402,
  kPointwiseDescriptor = 750,
  kGraphOperations = 801,
  kGraphEngineCount = 802,
  kTensorDataType = 901,
  kTensorDimensions = 902,
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

}  // namespace peakbench::emulator::cudnn

// cuDNN's graph interface by numbers, as far as the stand-in reads them (cudnn_graph.h).
#pragma once

namespace peakbench::emulator::cudnn {

// cudnnBackendDescriptorType_t. Operations not named here are read as operations all the same.
enum DescriptorType {
  kPointwiseOperation = 13,
  kGraphDescriptor = 15,
  kTensorDescriptor = 17,
  kMatmulOperation = 19,
  kReductionOperation = 22,
  kReshapeOperation = 31,
  kRngOperation = 33,
  kSdpaForwardOperation = 41,
};

// cudnnBackendAttributeName_t
enum Attribute {
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kConfigEngine = 300,
  kConfigKnobChoices = 302,
  kConfigWorkspaceBytes = 303,
  kConfigSharedMemoryBytes = 304,
  kPlanConfig = 401,
  kPlanWorkspaceBytes = 402,
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
  kMatmulC = 1522,
  kReductionX = 1610,
  kReductionY = 1611,
  kSdpaForwardQuery = 2800,
  kSdpaForwardKey = 2801,
  kSdpaForwardScale = 2805,
};

// cudnnBackendAttributeType_t
enum AttributeType { kTypeDataType = 1, kTypeBoolean = 2, kTypeInt64 = 3, kTypeDescriptor = 15 };

// cudnnDataType_t
enum DataType { kHalf = 2, kBFloat16 = 9 };

}  // namespace peakbench::emulator::cudnn

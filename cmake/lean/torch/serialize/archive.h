// In the place of LibTorch's own header while its headers are precompiled (harness/sdk): nn::Module
// names the archives in declarations, and their headers bring the whole of TorchScript, whose
// inline functions every source would instantiate anew (a second each, a third of what a plugin
// takes to compile).
#pragma once

namespace torch::serialize {
class InputArchive;
class OutputArchive;
}  // namespace torch::serialize

// The autograd engine of this process: LibTorch's own, which asks the SDK's stack for saved-tensor
// hooks.
#pragma once

namespace peakbench::worker {

// Before any autograd use; there is one engine a process. LibTorch keeps Python's hooks in a Python
// engine; without Python this is the place it leaves for them (torch/csrc/autograd/engine.h,
// get_default_saved_variable_hooks).
void install_engine();

}  // namespace peakbench::worker

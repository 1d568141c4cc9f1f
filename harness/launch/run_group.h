// Starts the worker group of a case, in the environment that its device needs.
#pragma once

#include <functional>

#include "launch/case.h"

namespace peakbench::launch {

using Prepare = std::function<void(GroupOrder&)>;

// A group whose files cannot be made is an outcome of its case as one that cannot be started is.
// `prepare` changes the order before it starts.
GroupReport run_group(const CaseOrder& order, result::JobMode mode, Runner& runner,
                      const Listener& listener, const Prepare& prepare = {},
                      const Emulated& how = {});

// The memory workers. On an emulated card without values first, as most cases read nothing of
// their card; and again with them where the host read what is not known.
GroupReport run_memory(const CaseOrder& order, Runner& runner, const Listener& listener,
                       const Prepare& prepare, Emulated how = {});

}  // namespace peakbench::launch

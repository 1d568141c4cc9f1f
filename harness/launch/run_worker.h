#pragma once

#include <functional>

#include "launch/case.h"
#include "launch/runner.h"

namespace peakbench::launch {

// Starts the worker of a case, in the environment that its device needs.

// Changes the order before the worker starts.
using Prepare = std::function<void(WorkerOrder&)>;

// A worker whose files cannot be made is an outcome of its case as one that cannot be started is.
WorkerReport run_worker(const CaseOrder& order, records::JobMode mode, Runner& runner,
                        const Listener& listener, const Prepare& prepare = {},
                        const Emulated& how = {});

// Runs the memory worker. On an emulated card first without values, as most cases read nothing from
// their card. Then again with values if the host read unknown ones.
WorkerReport run_memory(const CaseOrder& order, Runner& runner, const Listener& listener,
                        const Prepare& prepare, Emulated how = {});

}  // namespace peakbench::launch

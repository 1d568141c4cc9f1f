// The worker that runs cases: a program that was built for one PyTorch, and what came with it.
#pragma once

#include <string>

#include "planning/manifest.h"

namespace peakbench::planning {

// The PyTorch whose LibTorch a worker loads. Without a folder: the one that the worker was built
// with, which it finds by itself.
struct WorkerTorch {
  std::string folder;   // that holds version.py
  std::string version;  // 2.11.0+cu130
  std::string cuda;     // 13.0; empty: a build without CUDA
};

struct Worker {
  std::string program;        // peakbench-worker
  std::string plugins;        // folder of the plugins that came with it
  std::string values;         // library of values for emulated cards; empty: the emulator's own
  Stamp stamp = own_stamp();  // what it was built with, and what its plugins must be built with
  WorkerTorch torch = {};
};

// Of no LibTorch: for programs, which say with which one they ran.
inline Worker no_worker() {
  Worker none;
  none.stamp = {};
  return none;
}

// Of the LibTorch that it loads.
inline const std::string& libtorch_version(const Worker& worker) {
  return worker.torch.folder.empty() ? worker.stamp.libtorch_version : worker.torch.version;
}
// Of a build without CUDA, as stamps have it.
inline constexpr const char* kNoCuda = "none";
inline std::string libtorch_cuda(const Worker& worker) {
  if (worker.torch.folder.empty()) return worker.stamp.libtorch_cuda;
  return worker.torch.cuda.empty() ? kNoCuda : worker.torch.cuda;
}

// 2.1 is a start of 2.1.0 and of 2.1+cu130, and not of 2.15.0.
inline bool is_start_of(const std::string& typed, const std::string& version) {
  if (typed.empty() || !version.starts_with(typed)) return false;
  return typed.size() == version.size() || version[typed.size()] == '.' ||
         version[typed.size()] == '+';
}

// The variable with the LibTorch that the worker should load, as in the record: 2.11.0+cu130
// REVISION 13.0.
inline constexpr const char* kLibtorchVariable = "PEAKBENCH_WORKER_LIBTORCH";
inline std::string libtorch_text(const Worker& worker) {
  return libtorch_version(worker) + " " + worker.stamp.libtorch_git_version + " " +
         libtorch_cuda(worker);
}

}  // namespace peakbench::planning

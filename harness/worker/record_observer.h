// What models and strategies say of where they are, told to the recorder.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "peakbench/observer.h"
#include "record/recorder.h"

namespace peakbench::worker {

class RecordObserver final : public Observer {
 public:
  explicit RecordObserver(record::Recorder& recorder) : recorder_(recorder) {}  // keeps it

  // Gives every module of the tree its path; modules entered before, or unknown, have none.
  void name_modules(const torch::nn::Module& root);

  void enter_module(const torch::nn::Module& module) override;
  void exit_module() override { recorder_.exit_module(); }
  void enter_update() override { recorder_.enter_update(); }
  void exit_update() override { recorder_.exit_update(); }
  void enter_recompute() override { recorder_.enter_recompute(); }
  void exit_recompute() override { recorder_.exit_recompute(); }
  void name_storage(const at::Tensor& tensor, StorageRole role, const std::string& name) override;

 private:
  record::Recorder& recorder_;
  std::unordered_map<const torch::nn::Module*, std::int32_t> modules_;
};

}  // namespace peakbench::worker

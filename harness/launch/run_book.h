#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launch/case.h"
#include "launch/case_states.h"
#include "launch/equivalence_check.h"
#include "launch/session.h"
#include "planning/plan.h"
#include "records/run.h"

namespace peakbench::launch {

// How often run.json is written.

// After every worker, while a run is small. Each writing takes as long as the run is large: of many
// cases that take a tenth of a second each, it would take most of the time. Then it gets a tenth.
class WritePace {
 public:
  using Clock = std::chrono::steady_clock;

  bool due(std::size_t cases, Clock::time_point now) const {
    constexpr std::size_t kFew = 100;
    constexpr int kPausePerWriting = 9;
    return cases <= kFew || now - ended_ >= kPausePerWriting * took_;
  }
  void wrote(Clock::time_point from, Clock::time_point to) {
    took_ = to - from;
    ended_ = to;
  }

 private:
  Clock::duration took_{};
  Clock::time_point ended_;
};

// The record of a running run: results of its cases, written to run.json as their workers end. Some
// actions wait until a result is on the disk, where a kill cannot lose it: a case is shown, and its
// reference's checkpoint deleted.

class RunFolder;

// Where run.json is written, and the folder that the files of cases are below: empty: the same.
struct RunPlaces {
  const RunFolder& folder;
  std::string case_directory;
};

class RunBook {
 public:
  // `order`: the cases to run, by their indices, in the order in which they do. All references must
  // outlive it.
  RunBook(const planning::Plan& plan, const RunPlaces& places, records::Run run, CaseStates states,
          const std::vector<std::size_t>& order, ParameterCount parameters, RunListener& listener);

  void begin();
  records::Run end();

  const CaseStates& states() const { return states_; }
  std::size_t place(std::size_t index) const { return place_of_.at(index); }

  CaseOrder order(std::size_t index) const;
  // With the checkpoints that are known of now.
  std::vector<CaseOrder> memory_orders(const std::vector<std::size_t>& cases) const;

  // Events of a case. They are written by save() or save_now().
  void take_memory(std::size_t index, records::CaseResult found);
  // What others measured of it, all workers' together.
  void take_over(std::size_t index, records::CaseResult found);
  // To be changed only while the case is pending, or before the next save.
  records::CaseResult& result(std::size_t index) {
    texts_[index].clear();
    return *states_.results[index];
  }
  void is_over(std::size_t index) { states_.pending.erase(index); }
  void show(std::size_t index) { to_show_.push_back(index); }

  void save();  // at once, or when it is due (WritePace)
  void save_now();
  void tick();  // what is due meanwhile

 private:
  // What is in run.json, by index: null where nothing is known of a case.
  const records::CaseResult* known(std::size_t index) const;
  // With its reference's and with those that it is the reference of, as far as they are known.
  void compare_gradients_of(std::size_t index);
  void write(const std::string& status);

  const planning::Plan& plan_;
  const RunFolder& folder_;
  std::string case_directory_;
  RunListener& listener_;
  records::Run run_;
  nlohmann::json host_;
  CaseStates states_;
  std::vector<std::string> texts_;  // of cases that are over, for run.json; empty: none yet
  ReferenceCheckpoints checkpoints_;
  std::multimap<std::size_t, std::size_t> compared_with_;  // reference -> case
  std::map<std::size_t, std::size_t> place_of_;
  WritePace pace_;
  bool unsaved_ = false;
  std::vector<std::size_t> to_show_;   // ended, and not in run.json yet
  std::vector<std::size_t> to_close_;  // measured, and not in run.json yet
};

}  // namespace peakbench::launch

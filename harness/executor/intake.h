// What tasks have measured, taken into the book of the run that submitted them.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "launch/pending_groups.h"
#include "launch/run_book.h"
#include "plan/plan.h"
#include "result/run.h"

namespace peakbench::executor {

// Of which run a task's results are.
enum class From {
  kThisCall,
  kEarlierCall,  // what the machine failed then is measured again
};

class Intake {
 public:
  // The references must outlive it.
  Intake(const plan::Plan& plan, launch::RunBook& book);

  const std::map<std::string, std::size_t>& index_of() const { return index_of_; }
  bool is_pending(std::size_t index) const { return book_.states().pending.contains(index); }
  launch::Cases pending_of(const launch::Cases& cases) const;

  // From the run of a task of these cases. `last`: what is not whole, too, as nothing more comes of
  // this attempt.
  void take(const launch::Cases& cases, const result::Run& run, From from, bool last);
  void end(std::size_t index, result::CaseResult found);
  // As far as it is measured: for the row of a case that ends without its task's word.
  result::CaseResult known(std::size_t index) const;

 private:
  void take_unfinished(std::size_t index, const result::Run& run, const result::CaseResult& one);
  result::CaseResult as_measured_on(const result::Run& run, result::CaseResult one,
                                    std::size_t index) const;
  std::string reference_of(std::size_t index) const;

  const plan::Plan& plan_;
  launch::RunBook& book_;
  const nlohmann::json host_;
  std::map<std::string, std::size_t> index_of_;
};

}  // namespace peakbench::executor

#include "launch/run_book.h"

#include <fmt/format.h>

#include <deque>
#include <utility>

#include "base/errors.h"
#include "launch/run_folder.h"

namespace peakbench::launch {

RunBook::RunBook(const planning::Plan& plan, const RunPlaces& places, records::Run run,
                 CaseStates states, const std::vector<std::size_t>& order,
                 ParameterCount parameters, RunListener& listener)
    : plan_(plan),
      folder_(places.folder),
      case_directory_(places.case_directory.empty() ? folder_.path() : places.case_directory),
      listener_(listener),
      run_(std::move(run)),
      host_(host_environment(plan)),
      states_(std::move(states)),
      texts_(plan.cases.size()),
      checkpoints_(plan, case_directory_, std::move(parameters)) {
  for (const auto index : order) place_of_.emplace(index, place_of_.size());
  for (std::size_t i = 0; i < plan.cases.size(); ++i)
    if (const auto reference = checkpoints_.reference_of(i)) compared_with_.emplace(*reference, i);
}

void RunBook::begin() {
  // Killed between the two, the run before left what nobody needs any more.
  const auto known = measured_cases(states_);
  for (std::size_t i = 0; i < plan_.cases.size(); ++i) checkpoints_.close(i, known);
  listener_.run_started(place_of_.size(), plan_.cases.size() - place_of_.size());
  write("running");
}

records::Run RunBook::end() {
  save_now();
  write(states_.pending.empty() ? "complete" : "interrupted");
  for (std::size_t i = 0; i < plan_.cases.size(); ++i)
    if (const auto* one = known(i)) run_.cases.push_back(*one);
  return std::move(run_);
}

CaseOrder RunBook::order(std::size_t index) const {
  CaseOrder order;
  order.planned = &plan_.cases[index];
  order.request = &plan_.request;
  order.run_directory = case_directory_;
  return order;
}

std::vector<CaseOrder> RunBook::memory_orders(const std::vector<std::size_t>& cases) const {
  std::vector<CaseOrder> orders;
  const auto known = measured_cases(states_);
  for (const auto index : cases) {
    orders.push_back(order(index));
    orders.back().checkpoint = checkpoints_.open(index, known);
  }
  return orders;
}

void RunBook::take_memory(std::size_t index, records::CaseResult found) {
  texts_[index].clear();
  launch::take_memory(states_, index, std::move(found));
  compare_gradients_of(index);
  to_close_.push_back(index);
}

void RunBook::take_over(std::size_t index, records::CaseResult found) {
  texts_[index].clear();
  states_.to_check.erase(index);
  states_.results[index] = std::move(found);
  compare_gradients_of(index);
  to_close_.push_back(index);
}

void RunBook::compare_gradients_of(std::size_t index) {
  const auto compare = [this](std::size_t one, std::size_t reference) {
    auto& result = states_.results[one];
    const auto& other = states_.results[reference];
    if (result && other && compare_gradients(*result, *other)) texts_[one].clear();
  };
  if (const auto reference = checkpoints_.reference_of(index)) compare(index, *reference);
  const auto [first, last] = compared_with_.equal_range(index);
  for (auto at = first; at != last; ++at) compare(at->second, index);
}

void RunBook::save() {
  unsaved_ = true;
  const auto ended = states_.results.size() - states_.pending.size();
  if (pace_.due(ended, WritePace::Clock::now())) save_now();
}

void RunBook::save_now() {
  if (!unsaved_ && to_show_.empty()) return;
  write("running");
  unsaved_ = false;
  // Not before the result is written: without it the case is run again, and needs the file.
  const auto known = measured_cases(states_);
  for (const auto index : std::exchange(to_close_, {})) checkpoints_.close(index, known);
  for (const auto index : std::exchange(to_show_, {}))
    listener_.case_ended(place(index), *states_.results[index]);
}

void RunBook::tick() {
  try {
    if (unsaved_) save();
  } catch (const HostError&) {  // no fault of the worker's at work: said when it has ended
  }
}

const records::CaseResult* RunBook::known(std::size_t index) const {
  if (const auto& one = states_.results[index]) return &*one;
  const auto waits = states_.to_check.find(index);
  return waits == states_.to_check.end() ? nullptr : &waits->second;
}

void RunBook::write(const std::string& status) {
  const auto from = WritePace::Clock::now();
  run_.status = status;
  run_.pending.clear();
  for (const auto index : states_.pending) run_.pending.push_back(plan_.cases[index].spec.id);
  std::vector<const records::CaseResult*> cases;
  std::vector<const std::string*> texts;
  std::deque<std::string> of_now;  // of what may be other the next time
  for (std::size_t i = 0; i < plan_.cases.size(); ++i) {
    const auto* one = known(i);
    if (one == nullptr) continue;
    auto& text = states_.pending.contains(i) ? of_now.emplace_back() : texts_[i];
    if (text.empty()) text = records::case_text(*one);
    cases.push_back(one);
    texts.push_back(&text);
  }
  run_.environment = run_environment(std::move(run_.environment), host_, cases);
  try {
    records::write_run(run_, texts, folder_.path());
  } catch (const HostError& error) {
    if (!folder_.holds_run()) throw;
    throw HostError(
        fmt::format("{}\nThe file is as it was after the last worker. The same command with "
                    "--out {} --resume continues.",
                    error.what(), folder_.path()));
  }
  pace_.wrote(from, WritePace::Clock::now());
}

}  // namespace peakbench::launch

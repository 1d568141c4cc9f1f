#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "planning/plan.h"
#include "records/case.h"
#include "records/run.h"

namespace peakbench::launch {

// `environment` of a run: the host's, and what its cases agree on.

// Of the worker of all cases; where they have several, each says which LibTorch it ran with, and
// this says none.
nlohmann::json host_environment(const planning::Plan& plan);

// Updates `run` with the environments of `cases`. If all cases that have a key agree, it takes
// their value. If two disagree (the names of two cards), it takes that of `host`, or is absent.
nlohmann::json run_environment(nlohmann::json run, const nlohmann::json& host,
                               const std::vector<const records::CaseResult*>& cases);

// The folder of a run: created, checked, and locked during a run.

// Makes the folder, holds it until the end of its life, and takes away what a killed run, or merge,
// left half written. Throws ConfigError: cannot be made or written, in use, a name that is not
// UTF-8 (which results and jobs, being JSON, cannot hold).
class RunFolder {
 public:
  explicit RunFolder(std::string path);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  bool holds_run() const;
  // Throws ConfigError where the cases' folder is a link: a run writes and deletes below it.
  void refuse_links() const;
  // For a run that begins. Throws ConfigError: there is no run, but a folder `cases` with something
  // in it, which this run's files would come into; or it is a link.
  void refuse_strangers() const;
  // Deletes what the run in the folder wrote: run.json, fit.json, the files of its cases, and
  // unchanged pages of its report (base/own_file.h). Other files stay, and no link is followed.
  // Throws RunFileError if run.json is invalid. Throws ConfigError, before anything is deleted, if
  // the folder of the cases, or of one, is a link.
  void clear() const;

 private:
  std::string below(const char* name) const;

  std::string path_;
  int lock_ = -1;
};

// Settings that make two runs one: a resumed run must have the same.
nlohmann::json settings_of(const planning::Request& request);

// Settings of a program's case: its command, and its folder and environment if the suite has them.
nlohmann::json settings_of(const records::ProgramCommand& program);

// The run in the folder, to be continued with this plan, which may add cases. Throws ConfigError
// that says what differs.
records::Run read_matching_run(const std::string& path, const planning::Plan& plan);

}  // namespace peakbench::launch

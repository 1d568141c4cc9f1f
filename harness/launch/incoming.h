// Cases that come from other runs into a folder that has no run.json yet: all of them with their
// run, or none.
#pragma once

#include <set>
#include <string>

#include "base/folder.h"
#include "records/run.h"

namespace peakbench::launch {

// While it lives, a list of the cases is in the folder (incoming.tmp). Whoever opens the folder
// next, however this process ended, takes away by it what the cases have there
// (remove_unfinished_cases()).
class IncomingCases {
 public:
  // The list is on the disk before a case can arrive. Throws HostError if it cannot be written,
  // ConfigError if another program's file is in its place.
  IncomingCases(std::string folder, std::set<std::string> slugs);
  ~IncomingCases();  // takes away what has come, unless it is finished
  IncomingCases(const IncomingCases&) = delete;
  IncomingCases& operator=(const IncomingCases&) = delete;

  // Where the files of a case go. Throws ConfigError where links or files are in the way.
  files::Folder folder_of(const std::string& slug) const;

  // What has come is the run's: on the disk, and then run.json with it.
  void finish(const records::Run& run);

 private:
  std::string path_;
  std::set<std::string> slugs_;
  bool finished_ = false;
};

// By the list of one that was killed. A run.json that is there has what had come; nothing but the
// list goes then. For who holds the folder's lock.
void remove_unfinished_cases(const std::string& folder);

// Deletes recordings of a program's processes that no trace was made of.
void remove_journals(const files::Folder& case_folder);

// Of the folder of one case, what a run has written there; and the folder, should nothing be left
// in it. Throws ConfigError where it is a link.
void remove_case(const files::Folder& cases, const std::string& slug);

}  // namespace peakbench::launch

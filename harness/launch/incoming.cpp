#include "launch/incoming.h"

#include <sstream>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/errors.h"
#include "base/file.h"
#include "base/own_file.h"
#include "base/regular_file.h"
#include "records/run_files.h"

namespace peakbench::launch {
namespace {

constexpr const char* kList = "incoming.tmp";  // a slug a line, and the mark of own_file.h
constexpr const char* kRun = "run.json";

void remove_cases(const files::Folder& folder, const std::set<std::string>& slugs) {
  if (const auto cases = folder.folder(records::kCasesFolder))
    for (const auto& slug : slugs) remove_case(*cases, slug);
  folder.remove_if_empty(records::kCasesFolder);
}

// The last line is the mark.
std::set<std::string> slugs_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  if (!lines.empty()) lines.pop_back();
  std::erase_if(lines, [](const std::string& line) { return !records::is_file_name(line); });
  return {lines.begin(), lines.end()};
}

}  // namespace

IncomingCases::IncomingCases(std::string folder, std::set<std::string> slugs)
    : path_(std::move(folder)), slugs_(std::move(slugs)) {
  files::refuse_strangers(path_, {kList});
  std::string text;
  for (const auto& slug : slugs_) text += slug + "\n";
  files::write_file_atomically(files::Folder(path_).path_of(kList),
                               files::marked(kList, std::move(text)));
}

IncomingCases::~IncomingCases() {
  if (finished_) return;
  const files::SignalsWait wait;
  try {
    const files::Folder folder(path_);
    remove_cases(folder, slugs_);
    folder.remove_file(kList);
  } catch (const std::exception&) {  // the list says to the next one what is left
  }
}

files::Folder IncomingCases::folder_of(const std::string& slug) const {
  return files::Folder(path_).made(records::kCasesFolder).made(slug);
}

void IncomingCases::finish(const records::Run& run) {
  const files::Folder folder(path_);
  folder.flush();
  records::write_run(run, path_);
  finished_ = true;
  try {
    folder.remove_file(kList);
  } catch (
      const HostError&) {  // the run is there; whoever opens the folder next takes the list away
  }
}

void remove_unfinished_cases(const std::string& path) {
  const files::Folder folder(path);
  const auto list = folder.path_of(kList);
  if (!files::is_own_file(list)) return;
  if (!files::is_there(folder.path_of(kRun)))
    remove_cases(folder, slugs_in(files::read_regular_file(list, files::kMostRunText)));
  folder.remove_file(kList);
}

void remove_journals(const files::Folder& case_folder) {
  const auto journals = case_folder.folder(records::kJournalsFolder);
  if (!journals) return;
  for (const auto& name : journals->names()) journals->remove_file(name);
  case_folder.remove_if_empty(records::kJournalsFolder);
}

void remove_case(const files::Folder& cases, const std::string& slug) {
  const auto folder = cases.folder(slug);
  if (!folder) return;
  for (const auto& name : folder->names())
    if (records::is_case_file(name)) folder->remove_file(name);
  remove_journals(*folder);
  cases.remove_if_empty(slug);
}

}  // namespace peakbench::launch

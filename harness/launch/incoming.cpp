#include "launch/incoming.h"

#include <sstream>
#include <utility>
#include <vector>

#include "errors/errors.h"
#include "files/file.h"
#include "files/own_file.h"
#include "files/read_file.h"
#include "files/signals_wait.h"
#include "result/case_files.h"
#include "result/run_paths.h"

namespace peakbench::launch {
namespace {

constexpr const char* kList = "incoming.tmp";  // a slug a line, and the mark of own_file.h
constexpr const char* kRun = "run.json";

void remove_cases(const files::Folder& folder, const std::set<std::string>& slugs) {
  if (const auto cases = folder.folder(result::kCasesFolder))
    for (const auto& slug : slugs) remove_case(*cases, slug);
  folder.remove_if_empty(result::kCasesFolder);
}

// The last line is the mark.
std::set<std::string> slugs_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  if (!lines.empty()) lines.pop_back();
  std::erase_if(lines, [](const std::string& line) { return !result::is_file_name(line); });
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
  return files::Folder(path_).made(result::kCasesFolder).made(slug);
}

void IncomingCases::finish(const result::Run& run) {
  const files::Folder folder(path_);
  folder.flush();
  result::write_run(run, path_);
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
  const auto journals = case_folder.folder(result::kJournalsFolder);
  if (!journals) return;
  for (const auto& name : journals->names()) journals->remove_file(name);
  case_folder.remove_if_empty(result::kJournalsFolder);
}

void remove_case(const files::Folder& cases, const std::string& slug) {
  const auto folder = cases.folder(slug);
  if (!folder) return;
  for (const auto& name : folder->names())
    if (result::is_case_file(name)) folder->remove_file(name);
  remove_journals(*folder);
  cases.remove_if_empty(slug);
}

}  // namespace peakbench::launch

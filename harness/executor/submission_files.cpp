#include "executor/submission_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "errors/errors.h"
#include "files/atomic_file.h"
#include "files/file.h"
#include "json/fields.h"
#include "json/json_text.h"

namespace peakbench::executor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kFolder = "queue";  // below the run's

std::string whole_path(const fs::path& path) {
  return fs::absolute(path).lexically_normal().string();
}

// Nullopt: no such number, or something beside it.
std::optional<int> number_from(std::string_view text) {
  int number = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || rest != end || number < 0) return std::nullopt;
  return number;
}

std::vector<int> sorted_numbers(const std::vector<std::string>& names) {
  std::vector<int> numbers;
  for (const auto& name : names)
    if (const auto number = number_from(name)) numbers.push_back(*number);
  std::ranges::sort(numbers);
  return numbers;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  return names;
}

// Quick ones: a machine that falls over loses them, and the case is measured again.
void write_quickly(const std::string& path, const json& content) {
  files::AtomicFile file(path);
  file.write(json_text(content));
  file.finish(false);
}

// Nullopt where there is none, or none that is whole: a file that another machine is just
// replacing.
std::optional<json> read_if_there(const std::string& path) {
  if (!files::is_there(path)) return std::nullopt;
  try {
    return files::read_json_file(path);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

std::string text_of(TaskEnd::How how) {
  switch (how) {
    case TaskEnd::How::kDone:
      return "done";
    case TaskEnd::How::kStopped:
      return "stopped";
    case TaskEnd::How::kRefused:
      return "refused";
  }
  return "";
}

TaskEnd::How how_from(const Fields& fields) {
  const auto text = fields.get<std::string>("how");
  for (const auto how : {TaskEnd::How::kDone, TaskEnd::How::kStopped, TaskEnd::How::kRefused})
    if (text_of(how) == text) return how;
  throw FieldError(fields.pointer("how"), "expected done, stopped or refused, got " + text);
}

// What cannot be looked at may be there.
bool is_missing(const std::string& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() == fs::file_type::not_found;
}

// What `read` makes of the file's content; its errors name the file.
template <class Read>
auto read_named(const std::string& path, const json& content, Read read) {
  try {
    return read(content);
  } catch (const RunFileError& error) {
    throw RunFileError(fmt::format("{}: {}", path, error.what()));
  }
}

AtWork at_work_from(const json& content) {
  AtWork found;
  Fields(content).each("cases", [&](const Fields& one) {
    found.cases.push_back({one.get<std::string>("id"), one.get<std::size_t>("before")});
  });
  return found;
}

std::vector<std::vector<std::string>> tasks_from(const json& content) {
  const auto& list = Fields(content).require("tasks");
  if (!list.is_array()) throw FieldError("/tasks", "expected a list, got " + describe(list));
  std::vector<std::vector<std::string>> tasks;
  for (std::size_t i = 0; i < list.size(); ++i)
    tasks.push_back(read_value<std::vector<std::string>>(list[i], fmt::format("/tasks/{}", i)));
  return tasks;
}

// It stands in commands.
std::string number_of_job(const json& content) {
  auto job = Fields(content).get<std::string>("job");
  if (job.empty() || job.find_first_not_of("0123456789") != std::string::npos)
    throw FieldError("/job", fmt::format("expected a job's number, got {}", describe(job)));
  return job;
}

TaskEnd end_from(const json& content) {
  const Fields fields(content);
  TaskEnd end;
  end.task = fields.get<std::size_t>("task");
  end.attempt = static_cast<int>(fields.get<std::int64_t>("attempt"));
  end.how = how_from(fields);
  end.why = fields.get_or<std::string>("why", "");
  end.node = fields.get_or<std::string>("node", "");
  if (const auto* run = fields.find("run")) end.run = result::run_from_json(*run);
  return end;
}

void remove_submission(const SubmissionFiles& files) {
  std::error_code ignored;
  for (const auto& end : ends_in(files)) fs::remove(end.path, ignored);
  for (const auto& name : names_in(files.folder() + "/task")) {
    const auto number = number_from(name);
    if (!number) continue;
    const auto task = static_cast<std::size_t>(*number);
    for (const auto attempt : attempts_in(files, task)) {
      const auto folder = files.attempt_folder(task, attempt);
      for (const auto& path : {files.at_work(task, attempt), folder + "/run.json", folder})
        fs::remove(path, ignored);
    }
    for (const auto& path : {files.order(task), files.log(task), files.task_folder(task)})
      fs::remove(path, ignored);
  }
  for (const auto& name : names_in(files.logs()))
    if (name.ends_with(".txt")) fs::remove(files.logs() + "/" + name, ignored);
  for (const auto& path : {files.script(), files.tasks(), files.job()}) fs::remove(path, ignored);
  for (const auto& path : {files.ends(), files.logs(), files.folder() + "/task", files.folder()})
    fs::remove(path, ignored);  // a folder that is empty
}

}  // namespace

SubmissionFiles::SubmissionFiles(const std::string& run_folder, int number)
    : folder_(whole_path(fs::path(run_folder) / kFolder / std::to_string(number))) {}
SubmissionFiles::SubmissionFiles(const std::string& folder) : folder_(whole_path(folder)) {}

std::string SubmissionFiles::log(std::size_t task) const {
  return fmt::format("{}/{}.txt", logs(), task);
}
std::string SubmissionFiles::task_folder(std::size_t task) const {
  return fmt::format("{}/task/{}", folder_, task);
}
std::string SubmissionFiles::order(std::size_t task) const {
  return task_folder(task) + "/order.json";
}
std::string SubmissionFiles::attempt_folder(std::size_t task, int attempt) const {
  return fmt::format("{}/{}", task_folder(task), attempt);
}
std::string SubmissionFiles::at_work(std::size_t task, int attempt) const {
  return attempt_folder(task, attempt) + "/at_work.json";
}
std::string SubmissionFiles::end(std::size_t task, int attempt) const {
  return fmt::format("{}/{}-{}.json", ends(), task, attempt);
}

std::vector<int> submissions_in(const std::string& run_folder) {
  return sorted_numbers(names_in((fs::path(run_folder) / kFolder).string()));
}

std::vector<int> attempts_in(const SubmissionFiles& files, std::size_t task) {
  return sorted_numbers(names_in(files.task_folder(task)));
}

void write_at_work(const std::string& path, const AtWork& at_work) {
  json cases = json::array();
  for (const auto& one : at_work.cases) cases.push_back({{"id", one.id}, {"before", one.before}});
  write_quickly(path, {{"cases", cases}});
}

std::optional<AtWork> read_at_work(const std::string& path) {
  const auto content = read_if_there(path);
  if (!content) return std::nullopt;
  return read_named(path, *content, at_work_from);
}

void write_task_end(const std::string& path, const TaskEnd& end) {
  nlohmann::ordered_json content{{"task", end.task},        {"attempt", end.attempt},
                                 {"how", text_of(end.how)}, {"why", end.why},
                                 {"node", end.node},        {"run", nullptr}};
  if (end.run) content["run"] = result::to_json(*end.run);
  files::write_json_file(path, content);
}

std::optional<TaskEnd> read_task_end(const std::string& path) {
  const auto content = read_if_there(path);
  if (!content) return std::nullopt;
  return read_named(path, *content, end_from);
}

std::vector<EndName> ends_in(const SubmissionFiles& files) {
  std::vector<EndName> ends;
  for (const auto& name : names_in(files.ends())) {
    const auto dash = name.find('-');
    if (dash == std::string::npos || !name.ends_with(".json")) continue;
    const auto task = number_from(name.substr(0, dash));
    const auto attempt = number_from(name.substr(dash + 1, name.size() - dash - 6));
    if (task && attempt)
      ends.push_back({static_cast<std::size_t>(*task), *attempt, files.ends() + "/" + name});
  }
  return ends;
}

void write_tasks(const SubmissionFiles& files, const std::vector<std::vector<std::string>>& tasks) {
  files::write_json_file(files.tasks(), json{{"tasks", tasks}});
}

std::vector<std::vector<std::string>> read_tasks(const SubmissionFiles& files) {
  const auto path = files.tasks();
  try {
    if (!is_missing(path)) return read_named(path, files::read_json_file(path), tasks_from);
    if (is_missing(files.script())) return {};
    throw RunFileError(path + " is missing");
  } catch (const RunFileError& error) {
    throw RunFileError(
        fmt::format("{}. It says which cases the job of {} has, and without it they would be "
                    "submitted twice. Put it back; or, once squeue has no such job, delete {}.",
                    error.what(), files.script(), files.folder()));
  }
}

void write_job(const SubmissionFiles& files, const std::string& job) {
  files::write_json_file(files.job(), json{{"job", job}});
}

std::string read_job(const SubmissionFiles& files) {
  const auto path = files.job();
  if (is_missing(path)) return "";
  return read_named(path, files::read_json_file(path), number_of_job);
}

void remove_submissions(const std::string& run_folder) {
  for (const auto number : submissions_in(run_folder))
    remove_submission(SubmissionFiles(run_folder, number));
  std::error_code ignored;
  fs::remove(fs::path(run_folder) / kFolder, ignored);
}

}  // namespace peakbench::executor

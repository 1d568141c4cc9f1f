#include "cluster/submission_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/errors.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/numbers.h"

namespace peakbench::cluster {

std::optional<int> number_from(std::string_view text) {
  if (text.size() > 1 && text.front() == '0') return std::nullopt;  // nobody writes it so
  // Of the largest int there is no next one.
  const auto number = integer_from_text(text, {0, std::numeric_limits<int>::max() - 1});
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

namespace {

// Task and attempt of "TASK-ATTEMPT.json". Nullopt: no such name.
std::optional<std::pair<std::size_t, int>> end_from_name(std::string_view name) {
  constexpr std::string_view kEnding = ".json";
  const auto dash = name.find('-');
  if (dash == std::string_view::npos || !name.ends_with(kEnding)) return std::nullopt;
  name.remove_suffix(kEnding.size());
  if (dash > name.size()) return std::nullopt;
  const auto task = number_from(name.substr(0, dash)), attempt = number_from(name.substr(dash + 1));
  if (!task || !attempt) return std::nullopt;
  return std::pair(static_cast<std::size_t>(*task), *attempt);
}

namespace fs = std::filesystem;
using nlohmann::json;

std::string whole_path(const fs::path& path) {
  return fs::absolute(path).lexically_normal().string();
}

std::vector<int> sorted_numbers(const std::vector<std::string>& names) {
  std::vector<int> numbers;
  for (const auto& name : names)
    if (const auto number = number_from(name)) numbers.push_back(*number);
  std::ranges::sort(numbers);
  return numbers;
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

constexpr std::array kHows{"done", "stopped", "refused"};  // by TaskEnd::How

TaskEnd::How how_from(const Fields& fields) {
  const auto text = fields.get<std::string>("how");
  for (std::size_t i = 0; i < kHows.size(); ++i)
    if (kHows[i] == text) return static_cast<TaskEnd::How>(i);
  throw FieldError(fields.pointer("how"), "expected done, stopped or refused, got " + text);
}

// False: a stranger's file. Throws ConfigError: a link.
bool is_folder_in(const files::Folder& folder, const std::string& name) {
  std::error_code ignored;
  const auto type = fs::symlink_status(folder.path_of(name), ignored).type();
  if (type == fs::file_type::symlink) files::refuse_link(folder.path_of(name));
  return type == fs::file_type::directory;
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
  if (const auto* run = fields.find("run")) end.run = records::run_from_json(*run);
  return end;
}

}  // namespace

SubmissionFiles::SubmissionFiles(const std::string& run_folder, int number)
    : folder_(whole_path(fs::path(run_folder) / kQueueFolder / std::to_string(number))) {}
SubmissionFiles::SubmissionFiles(const std::string& folder) : folder_(whole_path(folder)) {}

std::string SubmissionFiles::log(std::size_t task) const {
  return fmt::format("{}/{}.txt", logs(), task);
}
std::string SubmissionFiles::task_folder(std::size_t task) const {
  return fmt::format("{}/{}/{}", folder_, kTasksFolder, task);
}
std::string SubmissionFiles::order(std::size_t task) const {
  return task_folder(task) + "/" + kOrderFile;
}
std::string SubmissionFiles::attempt_folder(std::size_t task, int attempt) const {
  return fmt::format("{}/{}", task_folder(task), attempt);
}
std::string SubmissionFiles::at_work(std::size_t task, int attempt) const {
  return attempt_folder(task, attempt) + "/" + kAtWorkFile;
}
std::string SubmissionFiles::end(std::size_t task, int attempt) const {
  return fmt::format("{}/{}-{}.json", ends(), task, attempt);
}

std::vector<int> submissions_in(const std::string& run_folder) {
  if (!files::is_folder(run_folder)) return {};
  const files::Folder run(run_folder);
  const auto queue = run.folder(kQueueFolder);
  if (!queue) return {};
  auto numbers = sorted_numbers(queue->names());
  std::erase_if(numbers, [&](int number) { return !is_folder_in(*queue, std::to_string(number)); });
  return numbers;
}

std::vector<int> attempts_in(const SubmissionFiles& files, std::size_t task) {
  return sorted_numbers(files::names_in(files.task_folder(task)));
}

void write_at_work(const std::string& path, const AtWork& at_work) {
  json cases = json::array();
  for (const auto& one : at_work.cases) cases.push_back({{"id", one.id}, {"before", one.before}});
  // Not durable: a machine that falls over loses it, and the case is measured again.
  files::write_file_atomically(path, json_text(json{{"cases", cases}}), false);
}

std::optional<AtWork> read_at_work(const std::string& path) {
  const auto content = read_if_there(path);
  if (!content) return std::nullopt;
  return read_named(path, *content, at_work_from);
}

void write_task_end(const std::string& path, const TaskEnd& end) {
  const auto* how = kHows.at(static_cast<std::size_t>(end.how));
  nlohmann::ordered_json content{{"task", end.task}, {"attempt", end.attempt}, {"how", how},
                                 {"why", end.why},   {"node", end.node},       {"run", nullptr}};
  if (end.run) content["run"] = records::to_json(*end.run);
  files::write_json_file(path, content);
}

std::optional<TaskEnd> read_task_end(const std::string& path) {
  const auto content = read_if_there(path);
  if (!content) return std::nullopt;
  return read_named(path, *content, end_from);
}

std::vector<EndName> ends_in(const SubmissionFiles& files) {
  std::vector<EndName> ends;
  for (const auto& name : files::names_in(files.ends()))
    if (const auto end = end_from_name(name))
      ends.push_back({end->first, end->second, files.ends() + "/" + name});
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

namespace {

using files::Folder;

// Every file of a run's submissions, and every folder, after what is in it.
class Walk {
 public:
  using Visit = std::function<void(const Folder& in, const std::string& name)>;
  Walk(Visit file, Visit folder) : file_(std::move(file)), folder_(std::move(folder)) {}

  void of_run(const Folder& run) const {
    each(run, kQueueFolder, [this](const Folder& queue) {
      each_number(queue, [this](const Folder& one) { of_submission(one); });
    });
  }

 private:
  using Enter = std::function<void(const Folder&)>;

  // What is no folder is a stranger's. Throws ConfigError: a link.
  void each(const Folder& in, const std::string& name, const Enter& enter) const {
    std::error_code ignored;
    const auto type = fs::symlink_status(in.path_of(name), ignored).type();
    if (type != fs::file_type::directory && type != fs::file_type::symlink) return;
    const auto found = in.folder(name);
    if (!found) return;
    enter(*found);
    folder_(in, name);
  }

  void each_number(const Folder& in, const Enter& enter) const {
    for (const auto& name : in.names())
      if (number_from(name)) each(in, name, enter);
  }

  void each_file(const Folder& in, const std::function<bool(const std::string&)>& is_own) const {
    for (const auto& name : in.names())
      if (is_own(name)) file_(in, name);
  }

  void of_submission(const Folder& one) const {
    each(one, kEndsFolder, [this](const Folder& ends) {
      each_file(ends, [](const auto& name) { return end_from_name(name).has_value(); });
    });
    each(one, kTasksFolder, [this](const Folder& tasks) {
      each_number(tasks, [this](const Folder& task) { of_task(task); });
    });
    each(one, kLogsFolder, [this](const Folder& logs) {
      each_file(logs, [](const auto& name) { return name.ends_with(".txt"); });
    });
    for (const auto* name : {kScriptFile, kTasksFile, kJobFile}) file_(one, name);
  }

  void of_task(const Folder& task) const {
    each_number(task, [this](const Folder& attempt) {
      for (const auto* name : {kAtWorkFile, "run.json"}) file_(attempt, name);
    });
    file_(task, kOrderFile);
  }

  Visit file_, folder_;
};

}  // namespace

void remove_submissions(const std::string& run_folder) {
  const Folder run(run_folder);
  const auto nothing = [](const Folder&, const std::string&) {};
  Walk(nothing, nothing).of_run(run);  // a link: nothing is deleted yet
  Walk([](const Folder& in, const std::string& name) { in.remove_file(name); },
       [](const Folder& in, const std::string& name) { in.remove_if_empty(name); })
      .of_run(run);
}

}  // namespace peakbench::cluster

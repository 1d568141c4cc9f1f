#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <utility>

#include "executor/queue_names.h"
#include "executor/submission_files.h"
#include "files/folder.h"

namespace peakbench::executor {
namespace {

namespace fs = std::filesystem;
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

}  // namespace peakbench::executor

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "records/run.h"

namespace peakbench::cluster {

// What files and folders of a run's submissions are called: RUN/queue/N and below.

inline constexpr const char *kQueueFolder = "queue", *kTasksFolder = "task", *kEndsFolder = "ended",
                            *kLogsFolder = "log";
inline constexpr const char *kScriptFile = "job.sh", *kTasksFile = "tasks.json",
                            *kJobFile = "job.json", *kOrderFile = "order.json",
                            *kAtWorkFile = "at_work.json";

// Number of a submission, a task or an attempt. Nullopt: no such number, or other text with it.
std::optional<int> number_from(std::string_view text);

// Files for communication between a run and its tasks: RUN/queue/N, a folder for each submission,
// on a shared file system. Every file is written atomically. The file that says that a task ended
// has a new name at every attempt, so that no cached name or content can be an older one.

// Names. Absolute, as jobs start anywhere.
class SubmissionFiles {
 public:
  SubmissionFiles(const std::string& run_folder, int number);
  // Of a submission's folder.
  explicit SubmissionFiles(const std::string& folder);

  const std::string& folder() const { return folder_; }
  std::string script() const { return folder_ + "/" + kScriptFile; }
  std::string tasks() const { return folder_ + "/" + kTasksFile; }  // ids of cases, a list a task
  std::string job() const { return folder_ + "/" + kJobFile; }      // what the scheduler calls it
  std::string logs() const { return folder_ + "/" + kLogsFolder; }
  std::string log(std::size_t task) const;
  std::string task_folder(std::size_t task) const;
  std::string order(std::size_t task) const;  // what it is to do
  // Of an attempt at the task, which alone writes in it: its run.json, and what it is at. The
  // machine of an earlier one may be lost to the scheduler, and still work.
  std::string attempt_folder(std::size_t task, int attempt) const;
  std::string at_work(std::size_t task, int attempt) const;
  std::string ends() const { return folder_ + "/" + kEndsFolder; }
  std::string end(std::size_t task, int attempt) const;

 private:
  std::string folder_;
};

// Numbers of the submissions in a run's folder, in order. Throws ConfigError where their folder, or
// that of one, is a link: a run writes and deletes below it.
std::vector<int> submissions_in(const std::string& run_folder);

// Numbers of the attempts at a task that have begun, in order.
std::vector<int> attempts_in(const SubmissionFiles& files, std::size_t task);

// Which cases an attempt is measuring; the scheduler may end it before it can say anything else.
struct AtWork {
  struct Case {
    std::string id;
    std::size_t before = 0;  // workers that had ended before it began, in this attempt
  };
  std::vector<Case> cases;
};
void write_at_work(const std::string& path, const AtWork& at_work);
std::optional<AtWork> read_at_work(const std::string& path);

// How an attempt at a task ended, as it says itself.
struct TaskEnd {
  enum class How {
    kDone,     // every case has its row
    kStopped,  // by a signal or a later attempt: the rest is pending
    kRefused,  // it could not begin: `why`
  };
  std::size_t task = 0;
  int attempt = 0;
  How how = How::kDone;
  std::string why, node;
  std::optional<records::Run> run;  // what was measured, of earlier attempts too
};
void write_task_end(const std::string& path, const TaskEnd& end);
// Nullopt: it does not exist yet, or cannot be read yet.
std::optional<TaskEnd> read_task_end(const std::string& path);

struct EndName {
  std::size_t task = 0;
  int attempt = 0;
  std::string path;
};
std::vector<EndName> ends_in(const SubmissionFiles& files);

void write_tasks(const SubmissionFiles& files, const std::vector<std::vector<std::string>>& tasks);
// Empty: a call ended before it could submit. Throws RunFileError with the file if it is invalid,
// or if it is missing next to a job's script.
std::vector<std::vector<std::string>> read_tasks(const SubmissionFiles& files);
void write_job(const SubmissionFiles& files, const std::string& job);
// Empty: not submitted, or not written down. Throws RunFileError that names the file.
std::string read_job(const SubmissionFiles& files);

// Deletes what a run's submissions hold. Files of other names stay, with their folders, and no link
// is followed. Throws ConfigError where one of the folders is a link: then nothing is deleted.
void remove_submissions(const std::string& run_folder);

}  // namespace peakbench::cluster

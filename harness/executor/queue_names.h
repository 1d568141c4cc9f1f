// What files and folders of a run's submissions are called: RUN/queue/N and below.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace peakbench::executor {

inline constexpr const char *kQueueFolder = "queue", *kTasksFolder = "task", *kEndsFolder = "ended",
                            *kLogsFolder = "log";
inline constexpr const char *kScriptFile = "job.sh", *kTasksFile = "tasks.json",
                            *kJobFile = "job.json", *kOrderFile = "order.json",
                            *kAtWorkFile = "at_work.json";

// Of a submission, a task or an attempt. Nullopt: no such number, or something beside it.
std::optional<int> number_from(std::string_view text);

// Task and attempt of "TASK-ATTEMPT.json". Nullopt: no such name.
std::optional<std::pair<std::size_t, int>> end_from_name(std::string_view name);

}  // namespace peakbench::executor

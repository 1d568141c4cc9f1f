#include "programs/internal_commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include "base/errors.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/json.h"
#include "base/printable.h"
#include "emulator/host/environment.h"
#include "emulator/host/installation.h"
#include "host/command.h"
#include "host/compiled_library.h"
#include "host/process.h"
#include "launch/interrupt.h"
#include "launch/machine.h"
#include "launch/outcome.h"
#include "programs/trace_program.h"
#include "programs/traced.h"
#include "records/case_json.h"
#include "records/device.h"
#include "records/job.h"
#include "records/run_files.h"
#include "records/torch_variables.h"

namespace peakbench::programs {
namespace {

namespace fs = std::filesystem;
using records::Status;

// python/peakbench/bench.py reads it, and leaves what it trained in the files that it names.
constexpr const char* kTrainedVariable = "PEAKBENCH_TRAINED";
constexpr const char* kRefusalVariable = "PEAKBENCH_REFUSAL";
constexpr const char* kRefusalFile = "refusal.json";
constexpr const char* kTrainedFile = "trained.json";
constexpr const char* kOwnParametersFile = "trained.parameters";
constexpr std::chrono::minutes kComparePatience{20};  // some read gigabytes
constexpr int kFirstSignal = 128;                     // beyond it: an exit code says which signal

// In one line, on the descriptor that whoever started this process listens to.
void tell(int descriptor, const nlohmann::json& line) {
  const auto text = json_line(line) + "\n";
  if (descriptor < 0) return;
  [[maybe_unused]] const auto written = write(descriptor, text.data(), text.size());
}

int tell_host_failure(int descriptor, const std::string& reason) {
  tell(descriptor, {{records::kHostFailureKey, reason}});
  return records::kHostFailureExit;
}

// The program is not to write there, nor to know of it.
int take_progress_descriptor() {
  const char* text = std::getenv("PEAKBENCH_PROGRESS_FD");
  if (text == nullptr) return -1;
  const int descriptor = std::atoi(text);
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  unsetenv("PEAKBENCH_PROGRESS_FD");
  return descriptor;
}

records::CaseSpec spec_of_job(const records::Job& job) {
  records::CaseSpec spec;
  static_cast<records::Setting&>(spec) = job;
  spec.id = job.case_id;
  spec.slug = fs::path(job.trace_path).parent_path().filename().string();
  return spec;
}

// Of the shell that the run was started from: they change figures, and the program gets them.
nlohmann::json inherited(const records::ProgramCommand& program) {
  auto found = nlohmann::json::object();
  const auto look = [&](const char* name) {
    const char* value = std::getenv(name);
    if (value != nullptr && !program.environment.contains(name)) found[name] = value;
  };
  for (const char* name : records::kAllocatorVariables) look(name);
  for (const char* name : records::kLibraryVariables) look(name);
  return found;
}

class CaseWorker {
 public:
  explicit CaseWorker(const std::string& job_path)
      : job_(records::job_from_json(files::read_json_file(job_path))),
        case_folder_(fs::path(job_.trace_path).parent_path()) {}

  void run() {
    records::WorkerResult found;
    try {
      found = measure();
    } catch (const HostError&) {
      throw;
    } catch (const ConfigError& error) {  // no tracer for its PyTorch, no such program
      found.status = Status::kUnsupported;
      found.reason = error.what();
    }
    files::write_json_file(job_.result_path, records::to_json(found));
  }

 private:
  records::WorkerResult measure() {
    const auto& program = *job_.program;
    const auto device = records::device_from(job_.device);
    TraceRequest request;
    request.device = job_.device;
    request.command = program.arguments;
    request.journals = case_folder_ / records::kJournalsFolder;
    request.values.assume = job_.assume;
    request.second_guesses = job_.second_guesses;
    request.quiet = true;
    if (device.kind == records::DeviceKind::kEmulated) request.card = card_of(device);
    files::make_folder(request.journals.string());
    const auto shell = inherited(program);
    enter(program, device);
    const bool is_asked = ask_for_promise(device);
    ask_for_refusal();
    const auto kills_before = launch::kernel_memory_kills();
    auto traced = trace_program(request);
    if (!traced.run) throw HostError("the program was not started: a signal came first");
    say_how_it_ended(traced, launch::kernel_memory_kills() > kills_before);
    auto found = result_of(*traced.run);
    if (!shell.empty()) found.settings["inherited"] = shell;
    if (is_asked) take_promise(found);
    take_refusal(found);
    return found;
  }

  std::string beside(const char* name) const { return (case_folder_ / name).string(); }

  // Only where results repeat: elsewhere a promise is claimed, and the answer is false.
  bool ask_for_promise(const records::Device& device) const {
    if (!facts_of(job_.kind).has_promise || !device.results_repeat) return false;
    for (const char* name : {kTrainedFile, kOwnParametersFile}) files::remove_file(beside(name));
    const bool is_held = job_.write_parameters_path.empty() && !job_.read_parameters_path.empty();
    const nlohmann::json asked{
        {"losses", beside(kTrainedFile)},
        {"parameters", is_held ? beside(kOwnParametersFile) : job_.write_parameters_path}};
    setenv(kTrainedVariable, asked.dump().c_str(), 1);
    return true;
  }

  // Of a function in Python: the sentence that says why it cannot be run so.
  void ask_for_refusal() const {
    if (job_.kind != records::CaseKind::kPython) return;
    files::remove_file(beside(kRefusalFile));
    setenv(kRefusalVariable, beside(kRefusalFile).c_str(), 1);
  }

  void take_refusal(records::WorkerResult& found) const {
    const auto file = beside(kRefusalFile);
    if (job_.kind != records::CaseKind::kPython || !files::is_there(file)) return;
    if (found.status == Status::kCrashed) {
      found.status = Status::kUnsupported;
      if (const auto why = files::read_json_file(file); why.is_string())
        found.reason = printable(why.get<std::string>());
    }
    files::remove_file(file);
  }

  void take_promise(records::WorkerResult& found) const {
    if (found.status == Status::kOk && !files::is_there(beside(kTrainedFile))) {
      found.status = Status::kCrashed;
      found.reason = "the program ended with exit code 0 before its last step was done";
    } else if (found.status == Status::kOk) {
      const auto told = files::read_json_file(beside(kTrainedFile));
      found.losses = records::read_losses(Fields(told));
      if (files::is_there(beside(kOwnParametersFile))) found.equivalence = held_against_reference();
    }
    for (const char* name : {kTrainedFile, kOwnParametersFile}) files::remove_file(beside(name));
  }

  // In a process of its own, once the program has ended: the reference's parameters are none of
  // its memory.
  records::Equivalence held_against_reference() const {
    auto promise = job_.promise;
    promise.verdict = "not_checked";
    const nlohmann::json asked{{"ours", beside(kOwnParametersFile)},
                               {"theirs", job_.read_parameters_path},
                               {"promise", nlohmann::json(records::to_json(promise))}};
    auto words = process::python_module(job_.program->arguments.front(), "peakbench.bench");
    words.insert(words.end(), {"--compare", json_line(asked)});
    const auto said =
        process::ask_command({.arguments = std::move(words), .patience = kComparePatience});
    const auto answer = nlohmann::json::parse(said.out, nullptr, false);
    if (!said.ok() || !answer.is_object()) {
      promise.reason = "the parameters could not be compared: " +
                       (said.start_error.empty() ? launch::log_tail(said.err) : said.start_error);
      return promise;
    }
    nlohmann::json whole{{"equivalence", nlohmann::json(records::to_json(promise))}};
    whole["equivalence"].update(answer);
    return records::read_equivalence(Fields(whole).child("equivalence"));
  }

  // A card's own file is found from where the run was started.
  static std::string card_of(records::Device device) {
    if (files::is_there(device.card)) device.card = fs::absolute(device.card).string();
    return card_text(device);
  }

  static void enter(const records::ProgramCommand& program, const records::Device& device) {
    if (chdir(program.folder.c_str()) != 0)
      throw ConfigError(
          fmt::format("{}: cannot be entered: {}", program.folder, std::strerror(errno)));
    for (const auto& [name, value] : program.environment) setenv(name.c_str(), value.c_str(), 1);
    if (device.is_host_memory) setenv("CUDA_VISIBLE_DEVICES", "", 1);  // there may be a card
    give_port();
  }

  // Where the processes of a program meet: cases side by side would all take PyTorch's default.
  // torchrun has the first for what --master-port is otherwise (argparse_util.py), others the
  // second.
  static void give_port() {
    const auto port = std::to_string(launch::free_port());
    for (const char* name : {"PET_MASTER_PORT", "MASTER_PORT"}) setenv(name, port.c_str(), 0);
  }

  // What the exit code alone does not say.
  static void say_how_it_ended(TracedProgram& traced, bool kernel_ran_out) {
    auto& run = *traced.run;
    if (traced.is_host_failure) throw HostError(run.reason);
    if (run.status == Status::kCrashed && traced.exit_code > kFirstSignal) {
      const int signal = traced.exit_code - kFirstSignal;
      run.reason = fmt::format("the program was killed by {}", launch::signal_name(signal));
      if (signal == SIGKILL && kernel_ran_out)
        throw HostError(
            "the kernel ended the program because the machine's memory ran out; free "
            "memory");
    }
    if (run.emulation || traced.doubts.empty() || run.status != Status::kOk) return;
    // Without a verdict that says so, a figure would pass for a whole one.
    run.status = Status::kCrashed;
    run.reason = "its figures are incomplete: " + traced.doubts.front().sentence;
  }

  records::WorkerResult result_of(const ProgramRun& run) const {
    auto found = write_case(run, spec_of_job(job_), case_folder_.parent_path().parent_path());
    found.settings = run.settings;
    return found;
  }

  const records::Job job_;
  const fs::path case_folder_;
};

}  // namespace

int run_case_worker(const std::string& job_path) {
  const int descriptor = take_progress_descriptor();
  tell(descriptor, records::to_json(records::Progress{.phase = "running"}));  // all that is known
  try {
    CaseWorker(job_path).run();
  } catch (const HostError& error) {
    return tell_host_failure(descriptor, error.what());
  } catch (const fs::filesystem_error& error) {
    return tell_host_failure(descriptor,
                             fmt::format("{}{}", error.what(), host_advice(error.code().value())));
  } catch (const std::bad_alloc&) {
    return tell_host_failure(descriptor, "the machine gave no memory; free some");
  }
  return 0;
}

namespace fs = std::filesystem;

constexpr unsigned kForAll = 0755;

fs::path make_release_libraries(const fs::path& torch, const fs::path& out) {
  const launch::InterruptScope interrupts;
  const std::function<bool()> cancelled = [] { return launch::interrupted(); };
  const auto found = pytorch::torch_in(torch);
  const auto name = pytorch::library_folder(found);
  if (name.empty())
    throw ConfigError(fmt::format("PyTorch {} in {} has no CUDA, or says no revision",
                                  found.version, torch.string()));
  const auto installation = emulator::find_installation();
  const auto values = emulator::values_library_for(found, installation, cancelled);
  if (!values.problem.empty()) throw ConfigError(values.problem);
  const auto tracer = tracer_for(found, tracer_places(installation), cancelled).library;
  fs::create_directories(out / name);
  const std::pair<fs::path, const char*> libraries[]{{values.path, "peakbench_values.so"},
                                                     {tracer.path, "peakbench_tracer.so"}};
  for (const auto& [library, file] : libraries) {
    const auto copy = out / name / file;
    fs::copy_file(library, copy, fs::copy_options::overwrite_existing);
    fs::permissions(copy, fs::perms(kForAll));  // the cache keeps them for one user alone
  }
  return out / name;
}

}  // namespace peakbench::programs

// What Peakbench reads that others wrote: a function a kind, which reads a file and does with it
// what the commands do first. For fuzzers and for reading many files in one process.
#pragma once

#include <string>
#include <vector>

namespace peakbench::hostile {

struct Reader {
  const char* name;
  // Throws only what the headers of the modules document: ConfigError, RunFileError, PluginError,
  // TraceError. Anything else is a defect.
  void (*read)(const std::string& path);
};

// suite, run, trace, history, manifest, safetensors, card, template, policy.
const std::vector<Reader>& readers();
const Reader* find_reader(const std::string& name);  // nullptr: none

void read_suite_file(const std::string& path);
void read_run_file(const std::string& path);
void read_trace_file(const std::string& path);
void read_history_file(const std::string& path);
void read_manifest_file(const std::string& path);
void read_safetensors_file(const std::string& path);
void read_card(const std::string& path);
void read_template(const std::string& path);
void read_policy(const std::string& path);

// False where the file was refused in a documented way.
bool is_taken(const Reader& reader, const std::string& path);

// The bytes as a file in memory, the same path each time; gone with the process.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void write(const char* bytes, std::size_t size) const;
  const std::string& path() const { return path_; }

 private:
  std::string folder_, path_;
};

std::string text_of(const std::string& path);

}  // namespace peakbench::hostile

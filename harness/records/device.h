// A device as a case's id names it, `cpu`, `cuda:1`, `emulated:h100-80gb,memory=60GiB,count=2`,
// read once into a record. What a device can do is asked of the record, never of its name.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace peakbench::records {

struct CaseResult;

enum class DeviceKind { kCpu, kCuda, kEmulated, kUnknown };

// What follows the word that an id begins with.
enum class DeviceForm {
  kWord,      // nothing: `cpu`
  kNumbered,  // which one of the machine's: `cuda:1`
  kNamed,     // the name of a card and its options: `emulated:h100-80gb,memory=60GiB`
};

// Common facts of the devices of a kind. The defaults are for an unknown kind: fields of a file
// about such a device are shown unchanged.
struct DeviceFacts {
  DeviceKind kind = DeviceKind::kUnknown;
  const char* word = "";  // what ids begin with
  DeviceForm form = DeviceForm::kWord;
  const char* title = "";           // for messages: "CUDA card"
  const char* example = "";         // "cuda:0"
  const char* fixed_space = "";     // the name of its own space, where that is not its id
  const char* module = "";          // the worker's module for it (recording/device.h)
  const char* needs = "";           // a message, if the module cannot be opened
  const char* model_fact = "card";  // under which a case's environment names what it ran on
  bool is_card = false;             // a card in the machine: another one has other figures
  bool has_times = true;            // its steps can be timed
  bool computes_values = true;      // losses and parameters mean something
  const char* no_times = "";        // a message why not; else empty
  const char* no_values = "";       // the same of values
  bool results_repeat = false;      // to the bit: promises about training can be checked
  bool is_host_memory = false;      // what it allocates is the worker process's own memory
  bool caching_allocator = false;   // PyTorch's, with the settings of the axis `allocator`
};

struct Device : DeviceFacts {
  std::string id;                              // in its one form
  int index = 0;                               // of numbered ones
  std::string card;                            // of named ones
  std::map<std::string, std::string> options;  // "memory" -> "60GiB", as typed
  std::string space;                           // "cuda:1": what its figures are of
};

// Other forms of the same (`cuda:01`, options in another order, `count=1`) give the same record.
// Throws ConfigError, with the nearest name, for what is no device.
Device device_from(const std::string& id);

// For texts in files of any origin; never throws. An unknown kind is a device without promises,
// kUnknown. A device of a known kind with other errors (`emulated:x,memory=none`) has its kind's
// facts. Both keep their text as the id.
Device recorded_device(const std::string& id);

// What is known of a kind before any device of it is named; kUnknown: the defaults.
const DeviceFacts& facts_of(DeviceKind kind);

// One id of each kind, for messages.
std::vector<std::string> device_examples();

// An emulated card by its name: emulated:h100-80gb.
std::string emulated_device(const std::string& card);

// The card's name and its options, as the emulator reads them: h100-80gb,memory=60GiB.
std::string card_text(const Device& device);

// The only function that decides whether a case's figures come from an emulated card. The device
// decides for a case without a worker, or whose worker ended without a result. `emulation` decides
// whatever the device is called: a worker on the stub libraries sees cuda:0, and a file may name a
// device of a later Peakbench.
bool is_emulated(const CaseResult& result);

}  // namespace peakbench::records

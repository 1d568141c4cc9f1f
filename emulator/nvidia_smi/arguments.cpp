#include "nvidia_smi/arguments.h"

#include <algorithm>
#include <stdexcept>

#include "nvidia_smi/fields.h"

namespace peakbench::emulator::smi {
namespace {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= list.size();) {
    const auto comma = std::min(list.find(',', at), list.size());
    const auto first = list.find_first_not_of(' ', at);
    if (first < comma) {
      const auto last = list.find_last_not_of(' ', comma - 1);
      parts.push_back(list.substr(first, last - first + 1));
    }
    at = comma + 1;
  }
  return parts;
}

[[noreturn]] void refuse(const std::string& word) {
  throw std::invalid_argument(
      "nvidia-smi as emulated by Peakbench has no " + word +
      "; it has -L, --query-gpu=..., --query-compute-apps=... and -i, with --format=csv");
}

// "--format=csv" has the value beside the name, "-i 0" behind it.
class Words {
 public:
  explicit Words(const std::vector<std::string>& words) : words_(words) {}

  bool next() {
    if (at_ == words_.size()) return false;
    const std::string& word = words_[at_++];
    const auto equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    name = word.substr(0, equals);
    beside_ = equals == std::string::npos ? "" : word.substr(equals + 1);
    return true;
  }
  std::string value() {
    if (!beside_.empty()) return beside_;
    if (at_ == words_.size()) throw std::invalid_argument("Option " + name + " needs a value.");
    return words_[at_++];
  }

  std::string name;

 private:
  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  std::string beside_;
};

void read_format(Arguments& asked, const std::string& format) {
  const auto parts = split(format);
  if (std::ranges::find(parts, "csv") == parts.end()) refuse("--format=" + format);
  for (const std::string& part : parts) {
    if (part == "noheader") {
      asked.heading = false;
    } else if (part == "nounits") {
      asked.units = false;
    } else if (part != "csv") {
      refuse("--format=" + part);
    }
  }
}

void query(Arguments& asked, What what, const std::string& fields) {
  asked.what = what;
  asked.fields = split(fields);
  for (const std::string& field : asked.fields) check_field(what == What::cards, field);
}

}  // namespace

Arguments parse(const std::vector<std::string>& given) {
  Arguments asked;
  bool format = false;
  for (Words words(given); words.next();) {
    const std::string& name = words.name;
    if (name == "-L" || name == "--list-gpus") {
      asked.what = What::list;
    } else if (name == "-i" || name == "--id") {
      asked.only = split(words.value());
    } else if (name == "--query-gpu") {
      query(asked, What::cards, words.value());
    } else if (name == "--query-compute-apps") {
      query(asked, What::processes, words.value());
    } else if (name == "--format") {
      read_format(asked, words.value());
      format = true;
    } else {
      refuse(name);
    }
  }
  if (!asked.fields.empty() && !format)
    throw std::invalid_argument("\"--format=\" switch is missing. Option \"--query-*\" needs it.");
  return asked;
}

}  // namespace peakbench::emulator::smi

#include "reports/fidelity/program_result.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "errors/errors.h"
#include "files/file.h"
#include "json/fields.h"
#include "result/device.h"

namespace peakbench::fidelity {
namespace {

const char* key_of(const std::string& path, const std::string& metric) {
  if (metric == "peak_reserved") return "peak_reserved_bytes";
  if (metric != "peak_active") return "peak_allocated_bytes";
  throw ConfigError(fmt::format(
      "{}: `peakbench emulate` does not count active memory; have the program print "
      "torch.cuda.memory_stats()[\"active_bytes.all.peak\"], and write it into `emulated`",
      path));
}

std::int64_t largest(const Fields& fields, const char* key) {
  std::int64_t most = 0;
  fields.each("processes", [&](const Fields& process) {
    process.each("devices", [&](const Fields& device) {
      most = std::max(most, device.get_or(key, std::int64_t{0}, kMeasured));
    });
  });
  if (most == 0)
    throw FieldError(fields.pointer("processes"),
                     "no process has PyTorch's own count of memory on a card");
  return most;
}

// A card as `peakbench emulate` was given it, without the option that cases do not have.
struct GivenCard {
  std::string card;
  std::string streams = "at-once";
};

GivenCard given_card(std::string text) {
  GivenCard given;
  const std::string option = ",streams=";
  if (const auto at = text.find(option); at != std::string::npos) {
    const auto end = std::min(text.find(',', at + 1), text.size());
    given.streams = text.substr(at + option.size(), end - at - option.size());
    text.erase(at, end - at);
  }
  given.card = result::device_from(result::emulated_device(text)).card;
  return given;
}

void check_card(const Fields& fields, const Record& record) {
  const auto text = fields.get<std::string>("card");
  const auto given = given_card(text);
  const auto expected = result::recorded_device(record.figure.device).card;
  if (given.card != expected)
    throw FieldError(fields.pointer("card"),
                     fmt::format("the program ran on {}, the record is of {}", text, expected));
  const auto streams = record.streams.empty() ? "at-once" : record.streams;
  if (given.streams != streams)
    throw FieldError(
        fields.pointer("card"),
        fmt::format("the program ran on {}, the record is of streams={}", text, streams));
}

Emulated read(const Fields& fields, const std::string& path, const Record& record) {
  check_card(fields, record);
  if (const auto code = fields.get<std::int64_t>("exit_code"); code != 0)
    throw FieldError(fields.pointer("exit_code"),
                     fmt::format("the program failed with {}: its peak is of no whole run", code));
  Emulated emulated{.bytes = largest(fields, key_of(path, record.figure.metric)),
                    .verdict = fields.child("verdict").get<std::string>("kind"),
                    .date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))};
  fields.each("cards", [&](const Fields& used) {
    emulated.peak_used_bytes.push_back(used.get("peak_used_bytes", kMeasured));
  });
  if (const auto torch = fields.maybe_child("torch"))
    emulated.versions["torch"] = torch->get<std::string>("version");
  return emulated;
}

}  // namespace

Emulated read_program_result(const std::string& path, const Record& record) {
  const auto json = files::read_json_file(path);
  try {
    return read(Fields(json), path, record);
  } catch (const FieldError& error) {
    throw ConfigError(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace peakbench::fidelity

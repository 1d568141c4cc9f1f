#include "trace/chrome_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "trace/maxima.h"
#include "trace/output_file.h"
#include "trace/timeline.h"

namespace peakbench::trace {
namespace {

// More samples of a counter than a screen has pixels, many times; each the maximum of its events.
constexpr std::size_t kMostSamples = 100'000;

// Format: Trace Event Format (Google), JSON object form, read by Perfetto. One process a space.
class Chrome {
 public:
  Chrome(const Trace& trace, const std::vector<Lifetime>& lifetimes, OutputFile& file)
      : trace_(trace), lifetimes_(lifetimes), file_(file) {}

  void write() {
    const nlohmann::json origin = {
        {"device", trace_.device},
        {"emulated", trace_.emulated},
        {"time", trace_.emulated ? "emulated card: one event is one microsecond, there is no clock"
                                 : "since the first event"}};
    file_.write(fmt::format("{{\"otherData\":{},\"displayTimeUnit\":\"ns\",\"traceEvents\":[",
                            text(origin)));
    for (std::size_t space = 0; space < trace_.spaces.size(); ++space)
      write_space(static_cast<int>(space));
    file_.write("\n]}\n");
  }

 private:
  static std::string text(const nlohmann::json& json) { return json_line(json); }

  void entry(const std::string& fields) {
    file_.write(first_ ? "\n{" : ",\n{");
    first_ = false;
    file_.write(fields);
    file_.write('}');
  }

  // Microseconds, with the nanoseconds behind the point.
  std::string time(std::uint64_t event) const {
    if (trace_.emulated) return fmt::format("{}", event);
    const auto last = std::min<std::uint64_t>(event, trace_.events.size() - 1);
    const auto ns = std::max<std::int64_t>(trace_.events[last].time_ns, 0);
    return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
  }

  void write_space(int space) {
    const auto name = trace_.spaces[static_cast<std::size_t>(space)];
    entry(fmt::format(R"("ph":"M","pid":{},"name":"process_name","args":{{"name":{}}})", space,
                      text(trace_.emulated ? name + " (emulated)" : name)));
    if (space == trace_.own_space) write_phases();
    write_counters(space);
    write_peak(space);
  }

  void write_phases() {
    const int own = trace_.own_space;
    entry(fmt::format(
        R"("ph":"M","pid":{},"tid":1,"name":"thread_name","args":{{"name":"phases"}})", own));
    for (const auto& span : phase_spans(trace_)) {
      entry(fmt::format(R"("ph":"B","pid":{},"tid":1,"name":"{}","ts":{},"args":{{"step":{}}})",
                        own, to_string(span.phase), time(span.first), span.step));
      entry(fmt::format(R"("ph":"E","pid":{},"tid":1,"ts":{})", own, time(span.last)));
    }
  }

  void counter(int space, const char* name, std::uint64_t event, std::int64_t bytes) {
    entry(fmt::format(R"("ph":"C","pid":{},"name":"{}","ts":{},"args":{{"bytes":{}}})", space, name,
                      time(event), bytes));
  }

  void write_counters(int space) {
    TimelineSample before;
    bool first = true;
    for (const auto& sample : timeline(trace_, lifetimes_, kMostSamples, space).samples) {
      const auto changed = [&](std::int64_t now, std::int64_t then) {
        return first || now != then;
      };
      if (changed(sample.allocated_bytes, before.allocated_bytes))
        counter(space, "allocated", sample.event, sample.allocated_bytes);
      if (before.reserved_bytes != sample.reserved_bytes)
        counter(space, "reserved", sample.event, sample.reserved_bytes);
      for (std::size_t i = 0; i < kCategoryCount; ++i)
        if (changed(sample.by_category[i], before.by_category[i]))
          counter(space, to_string(static_cast<Category>(i)), sample.event, sample.by_category[i]);
      before = sample;
      first = false;
    }
  }

  void write_peak(int space) {
    if (trace_.events.empty()) return;
    const auto peak = find_peak(trace_, lifetimes_, space);
    entry(fmt::format(
        R"("ph":"i","s":"p","pid":{},"tid":1,"name":"peak","ts":{},"args":{{"allocated_bytes":{}}})",
        space, time(peak.event), peak.allocated_bytes));
  }

  const Trace& trace_;
  const std::vector<Lifetime>& lifetimes_;
  OutputFile& file_;
  bool first_ = true;
};

}  // namespace

void write_chrome_trace(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                        const std::string& path) {
  OutputFile file(path);
  Chrome(trace, lifetimes, file).write();
  file.finish();
}

}  // namespace peakbench::trace

#include "reports/run/trace_data.h"

#include <zlib.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "reports/render/text.h"
#include "reports/render/words.h"
#include "trace/timeline.h"

namespace peakbench::reports {
namespace {

using nlohmann::json;
using trace::Lifetime;
using trace::Trace;

constexpr std::size_t kCoarse = 2000, kFine = 32000;
constexpr std::uint64_t kFineFrom =
    65536;  // with fewer events the chart works from the allocations

class Columns {
 public:
  void add(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_ += static_cast<char>(value | 0x80U);
    bytes_ += static_cast<char>(value);
  }
  void add_signed(std::int64_t value) {
    add(static_cast<std::uint64_t>(value) << 1U ^ static_cast<std::uint64_t>(value >> 63));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

json texts(const std::vector<std::string>& names) {
  json list = json::array();
  for (const std::string& name : names) list.push_back(printable(name));
  return list;
}

json header(const Trace& trace, std::uint64_t peak_event, bool clocked) {
  json categories = json::array(), names = json::array(), spans = json::array();
  for (std::size_t i = 0; i < trace::kCategoryCount; ++i) {
    const std::string category = to_string(static_cast<trace::Category>(i));
    categories.push_back({category, category_label(category)});
  }
  for (const trace::Name& name : trace.names)
    names.push_back({printable(name.name), printable(name.shape), printable(name.dtype)});
  for (const trace::PhaseSpan& span : trace::phase_spans(trace)) {
    spans.push_back(
        {to_string(span.phase), span.step, span.first, span.last, span.first_ns, span.last_ns});
  }
  return {{"version", 1},
          {"events", trace.events.size()},
          {"emulated", trace.emulated},
          {"clocked", clocked},
          {"peak", peak_event},
          {"categories", categories},
          {"modules", texts(trace.modules)},
          {"operators", texts(trace.operators)},
          {"names", names},
          {"spans", spans}};
}

std::size_t add_allocations(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                            Columns& columns) {
  std::vector<const Lifetime*> own;
  for (const Lifetime& lifetime : lifetimes) {
    if (trace.events[lifetime.first].space == trace.own_space) own.push_back(&lifetime);
  }
  const auto column = [&](auto value) {
    for (const Lifetime* life : own)
      columns.add(static_cast<std::uint64_t>(value(*life, trace.events[life->first])));
  };
  std::uint64_t previous = 0;
  column([&](auto& life, auto&) { return life.first - std::exchange(previous, life.first); });
  column([&](auto& life, auto&) {
    return life.last >= trace.events.size() ? 0 : life.last - life.first;
  });
  column([](auto&, auto& event) { return event.requested_bytes; });
  column([](auto&, auto& event) { return event.block_bytes - event.requested_bytes; });
  column([](auto& life, auto&) { return static_cast<int>(life.category); });
  column([](auto&, auto& event) { return event.module + 1; });
  column([](auto&, auto& event) { return event.op + 1; });
  column([](auto& life, auto&) { return life.name + 1; });
  return own.size();
}

std::size_t add_reserved(const Trace& trace, Columns& columns) {
  std::size_t changes = 0;
  std::uint64_t previous = 0;
  for (std::uint64_t i = 0; i < trace.events.size(); ++i) {
    const std::int64_t change =
        trace.events[i].space == trace.own_space ? trace::reserved_change(trace.events[i]) : 0;
    if (change == 0) continue;
    ++changes;
    columns.add(i - previous);
    columns.add_signed(change);
    previous = i;
  }
  return changes;
}

void add_level(const trace::Timeline& level, bool clocked, Columns& columns) {
  std::uint64_t previous = 0;
  std::int64_t time = 0;
  for (const trace::TimelineSample& sample : level.samples) {
    columns.add(sample.event - previous);
    previous = sample.event;
  }
  if (clocked) {
    for (const trace::TimelineSample& sample : level.samples) {
      columns.add_signed(sample.time_ns - time);
      time = sample.time_ns;
    }
  }
  for (std::size_t category = 0; category < trace::kCategoryCount; ++category) {
    std::int64_t bytes = 0;
    for (const trace::TimelineSample& sample : level.samples) {
      columns.add_signed(sample.by_category[category] - bytes);
      bytes = sample.by_category[category];
    }
  }
}

std::string deflated(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string result(size, '\0');
  const int code = compress2(reinterpret_cast<Bytef*>(result.data()), &size,
                             reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 4);
  if (code != Z_OK)
    throw std::runtime_error("zlib cannot pack a trace: error " + std::to_string(code));
  result.resize(size);
  return result;
}

std::string little_endian(std::uint32_t value) {
  std::string bytes;
  for (unsigned shift = 0; shift < 32; shift += 8)
    bytes += static_cast<char>(value >> shift & 0xFFU);
  return bytes;
}

}  // namespace

std::string base64(const std::string& bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t at) {
      return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0U;
    };
    const unsigned group = byte(i) << 16U | byte(i + 1) << 8U | byte(i + 2);
    text += kDigits[group >> 18U];
    text += kDigits[group >> 12U & 63U];
    text += i + 1 < bytes.size() ? kDigits[group >> 6U & 63U] : '=';
    text += i + 2 < bytes.size() ? kDigits[group & 63U] : '=';
  }
  return text;
}

std::string pack_trace(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                       std::uint64_t peak_event, bool whole) {
  const bool clocked = !trace.emulated && !trace.events.empty() && trace.events.back().time_ns >= 0;
  std::vector<std::size_t> buckets{kCoarse};
  if (whole && trace.events.size() > kFineFrom) buckets.push_back(kFine);
  Columns columns;
  json head = header(trace, peak_event, clocked);
  head["allocations"] = whole ? add_allocations(trace, lifetimes, columns) : 0;
  head["reserved"] = add_reserved(trace, columns);
  head["levels"] = json::array();
  for (const trace::Timeline& level : trace::timeline_levels(trace, lifetimes, buckets)) {
    head["levels"].push_back(level.samples.size());
    add_level(level, clocked, columns);
  }
  const std::string text = head.dump();
  return base64(
      deflated(little_endian(static_cast<std::uint32_t>(text.size())) + text + columns.bytes()));
}

}  // namespace peakbench::reports

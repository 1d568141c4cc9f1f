#include "core/python_place.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/collector.h"
#include "tracer/python_api.h"
#include "tracer/python_frames.h"

namespace peakbench::emulator {
namespace {

using tracer::Owned;
using tracer::PythonFrame;

bool is_of_pytorch(const char* file) {
  return std::strstr(file, "/site-packages/torch/") || std::strstr(file, "/dist-packages/torch/") ||
         std::strstr(file, "/lib/peakbench/") || file[0] == '<';
}

struct Position {
  long line = -1, column = -1;
};

bool knows_columns() { return tracer::python().instruction != nullptr; }

// Of the expression that the frame evaluates. An instruction takes two bytes.
Position position_of(const PythonFrame& frame) {
  const auto& p = tracer::python();
  const tracer::CollectorHeld held;
  const auto positions_of = tracer::attribute(frame.code, "co_positions");
  const Owned positions(positions_of ? p.call_with(positions_of.get(), nullptr) : nullptr);
  for (int left = positions ? frame.at / 2 : -1; left >= 0; --left) {
    const Owned position(p.next(positions.get()));
    if (!position) break;
    if (left > 0) continue;
    const auto number = [&](std::ptrdiff_t at) {  // line, last line, column, last column
      return static_cast<long>(p.number(p.tuple_item(position.get(), at)));
    };
    const Position found{number(0), number(2)};
    p.clear_error();  // None is no number: -1
    return found;
  }
  return {};
}

bool is_part_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// int(, math.floor( and their like.
constexpr std::string_view kConversions[] = {"int(", "floor(", "ceil(", "trunc("};

// What begins at the column is such a call, or the first thing in one.
bool makes_integer_at(std::string_view line, std::size_t column) {
  const auto before = line.substr(0, column);
  auto called = line.substr(column);
  if (called.starts_with("math.")) called.remove_prefix(5);
  for (const auto conversion : kConversions) {
    if (called.starts_with(conversion)) return true;
    if (!before.ends_with(conversion)) continue;
    const auto ahead = before.substr(0, before.size() - conversion.size());
    if (ahead.empty() || !is_part_of_name(ahead.back())) return true;
  }
  return false;
}

// The lines of the file that was asked for last: a program reads at many of them.
std::string line_of(const char* file, long number) {
  static std::mutex mutex;
  static auto* const lines = new std::vector<std::string>;
  static auto* const of_file = new std::string;
  const std::lock_guard lock(mutex);
  if (*of_file != file) {
    *of_file = file;
    lines->clear();
    std::ifstream source(file);
    for (std::string line; std::getline(source, line);) lines->push_back(std::move(line));
  }
  const auto at = static_cast<std::size_t>(number) - 1;
  return number > 0 && at < lines->size() ? lines->at(at) : "";
}

bool may_make_integer(std::string_view line) {
  return std::ranges::any_of(kConversions, [&](std::string_view conversion) {
    return line.find(conversion) != std::string_view::npos;
  });
}

PythonUse find_use(const PythonFrame& frame, const char* file) {
  const long number = tracer::line_of(frame);
  const auto line = line_of(file, number);
  if (line.empty()) return {};
  PythonUse use;
  if (!knows_columns() || !may_make_integer(line)) return use;
  const auto at = position_of(frame);
  const auto column = static_cast<std::size_t>(at.column);
  use.makes_integer =
      at.line == number && at.column >= 0 && column < line.size() && makes_integer_at(line, column);
  return use;
}

// A loop reads at the same place again and again.
PythonUse use_of(const PythonFrame& frame, const char* file) {
  static std::mutex mutex;  // never held while the interpreter may run something
  static auto* const seen = new std::map<std::string, PythonUse>;
  const std::string key = std::string(file) + ":" + std::to_string(tracer::line_of(frame)) + ":" +
                          std::to_string(frame.at);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = seen->find(key); found != seen->end()) return found->second;
  }
  const auto use = find_use(frame, file);
  const std::lock_guard lock(mutex);
  return (*seen)[key] = use;
}

// Writes the frame's place; whether it is the program's own.
bool describe(const PythonFrame& frame, char* out, std::size_t size, PythonUse& use) {
  const auto name = tracer::attribute(frame.code, "co_filename");
  const auto file = tracer::utf8_of(name.get(), "");
  if (file.empty()) return false;
  const auto slash = file.rfind('/');
  std::snprintf(out, size, "%s:%d", file.c_str() + (slash == std::string::npos ? 0 : slash + 1),
                tracer::line_of(frame));
  const bool own = !is_of_pytorch(file.c_str());
  if (own) use = use_of(frame, file.c_str());
  return own;
}

PythonUse walk(char* out, std::size_t size) {
  constexpr std::size_t kDeepest = 1024;
  static thread_local std::array<PythonFrame, kDeepest> frames;
  const auto count = tracer::python_frames(frames.data(), frames.size());
  PythonUse use;
  for (std::size_t i = 0; i < count; ++i)
    if (describe(frames[i], out, size, use)) break;
  return use;
}

}  // namespace

PythonUse find_python_place(char* out, std::size_t size) {
  out[0] = '\0';
  const auto& p = tracer::python();
  if (!p.knows_frames() || !p.is_initialized()) return {};
  if (tracer::python_is_ending()) return {};
  const int held = p.ensure();
  const auto use = walk(out, size);
  p.release(held);
  return use;
}

}  // namespace peakbench::emulator

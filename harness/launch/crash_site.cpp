#include "launch/crash_site.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>

#include "text/bounded_text.h"

namespace peakbench::launch {
namespace {

constexpr std::size_t kMostFrames = 4, kLongestName = 200;

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : name;
}

// "sgd.so+0x12ab _ZN3Sgd6updateEv".
std::string frame_in_words(const std::string& frame) {
  const auto space = frame.find(' ');
  if (space == std::string::npos) return frame;
  return fmt::format("{} ({})", bounded(demangled(frame.substr(space + 1)), kLongestName),
                     frame.substr(0, space));
}

}  // namespace

CrashSite crash_site_from_json(const nlohmann::json& json) {
  const auto text = [&](const char* key) { return bounded(json.at(key).get<std::string>()); };
  CrashSite site{text("path"), text("plugin"), text("call"), text("place"), {}};
  for (const auto& frame : json.at("frames")) {
    if (site.frames.size() == kMostFrames) break;
    site.frames.push_back(bounded(frame.get<std::string>(), 2 * kLongestName + 100));
  }
  return site;
}

std::string in_words(const CrashSite& site) {
  std::string words;
  if (!site.path.empty()) words += " in " + site.path;
  if (!site.plugin.empty()) words += ": " + site.plugin;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) words += (words.empty() ? " " : ", ") + part;
  };
  add(site.call.empty() ? "" : "in " + site.call);
  add(site.place.empty() || !words.empty() ? site.place : "in " + site.place);
  for (std::size_t i = 0; i < site.frames.size(); ++i)
    words += (i == 0 ? "; at " : ", from ") + frame_in_words(site.frames[i]);
  return words;
}

}  // namespace peakbench::launch

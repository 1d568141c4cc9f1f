#include "base/own_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/errors.h"
#include "base/file.h"
#include "base/fnv1a.h"
#include "base/regular_file.h"

namespace peakbench::files {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark =
    "Written by Peakbench, which replaces it unless it was changed: ";
constexpr std::size_t kDigits = 16;
constexpr std::string_view kComment = "<!-- ", kCommentEnd = " -->\n";
constexpr std::string_view kMember = ",\n  \"written_by\": \"", kMemberEnd = "\"\n}\n", kEnd = "\n";

std::string with_mark(std::string text, std::string_view before, std::string_view after) {
  text += before;
  const auto sum = fnv1a_64(text);
  return fmt::format("{}{}{:0{}x}{}", text, kMark, sum, kDigits, after);
}

bool fits(std::string_view text) {
  const auto at = text.rfind(kMark);
  if (at == std::string_view::npos) return false;
  const auto rest = text.substr(at + kMark.size());
  if (rest.size() < kDigits) return false;
  const auto end = rest.substr(kDigits);
  return (end == kCommentEnd || end == kMemberEnd || end == kEnd) &&
         rest.substr(0, kDigits) == fmt::format("{:0{}x}", fnv1a_64(text.substr(0, at)), kDigits);
}

std::string text_of(RegularFile& file) {
  std::string text(file.size(), '\0');
  text.resize(file.read(text.data(), text.size()));
  return text;
}

bool is_plain_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(fs::symlink_status(path, ignored));
}

}  // namespace

std::string marked(const std::string& name, std::string text) {
  const auto ending = fs::path(name).extension();
  if (ending == ".html" || ending == ".md" || ending == ".svg")
    return with_mark(std::move(text), kComment, kCommentEnd);
  constexpr std::string_view kObjectEnd = "\n}\n";
  if (ending != ".json" || !text.ends_with(kObjectEnd)) return with_mark(std::move(text), "", kEnd);
  text.resize(text.size() - kObjectEnd.size());
  return with_mark(std::move(text), kMember, kMemberEnd);
}

bool is_own_file(const std::string& path) { return is_plain_file(path) && fits(text_of(path)); }

bool is_own_file(const Folder& folder, const std::string& name) {
  RegularFile file(folder, name);
  try {
    return file.is_open() && fits(text_of(file));
  } catch (const std::system_error&) {  // what cannot be read is nobody's to delete
    return false;
  }
}

void refuse_strangers(const std::string& folder, const std::vector<std::string>& names) {
  for (const auto& name : names) {
    const auto path = (fs::path(folder) / name).string();
    if (!is_there(path) || is_own_file(path)) continue;
    const bool was_ours = is_plain_file(path) && text_of(path).find(kMark) != std::string::npos;
    throw ConfigError(fmt::format(
        "{}: is in the way: {}. Nothing was written; move it, or name another folder with --out",
        path,
        was_ours ? "it was changed since Peakbench wrote it" : "it was not written by Peakbench"));
  }
}

}  // namespace peakbench::files

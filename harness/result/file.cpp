#include "result/file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "result/atomic_file.h"
#include "result/errors.h"
#include "result/host_limits.h"

namespace peakbench::result {
namespace {

// By who must act: the machine's, or the user with another name.
[[noreturn]] void refuse(const std::error_code& error, const std::string& message) {
  if (is_host_error(error.value())) throw HostError(message);
  throw ConfigError(message);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw RunFileError(fmt::format("{}: cannot read: {}", path, std::strerror(errno)));
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad())
    throw RunFileError(fmt::format("{}: cannot read: {}", path, std::strerror(errno)));
  return std::move(text).str();
}

std::string line_and_column(const std::string& text, std::size_t byte) {
  const std::string_view before(text.data(), std::min(byte > 0 ? byte - 1 : 0, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto start = before.rfind('\n');
  const auto column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return fmt::format("line {}, column {}", line, column);
}

[[noreturn]] void fail_parse(const std::string& path, const std::string& text,
                             const nlohmann::json::parse_error& error) {
  const auto last = text.find_last_not_of(" \t\r\n");
  if (last == std::string::npos) throw RunFileError(fmt::format("{}: the file is empty", path));
  if (error.byte > last + 1) {
    throw RunFileError(
        fmt::format("{}: cut short: the JSON ends unfinished after {} bytes", path, text.size()));
  }
  throw RunFileError(fmt::format("{}: not JSON: {}", path, line_and_column(text, error.byte)));
}

}  // namespace

void write_all(int descriptor, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) cannot_write(path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.finish();
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

bool holds_nothing(const std::string& path) {
  std::error_code error;
  return !is_there(path) || (is_folder(path) && std::filesystem::is_empty(path, error) && !error);
}

std::string why_no_file(const std::string& path) {
  std::error_code ignored;
  switch (std::filesystem::status(path, ignored).type()) {
    case std::filesystem::file_type::directory:
      return "a folder";
    case std::filesystem::file_type::fifo:
      return "a FIFO";
    case std::filesystem::file_type::socket:
      return "a socket";
    case std::filesystem::file_type::block:
    case std::filesystem::file_type::character:
      return "a device";
    default:
      return "";
  }
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (is_folder(path)) return;
  refuse(error, fmt::format("cannot make the folder {}: {}. Choose another with --out.", path,
                            error ? error.message() : "a file of that name is in the way"));
}

void remove_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::remove(path, error) && error)
    refuse(error, fmt::format("{}: cannot delete: {}. Choose another folder with --out.", path,
                              error.message()));
}

std::string run_folder_of(const std::string& run) {
  if (is_folder(run)) return run;
  const auto folder = std::filesystem::path(run).parent_path();
  return folder.empty() ? "." : folder.string();
}

void write_json_file(const std::string& path, const nlohmann::ordered_json& json) {
  write_file_atomically(
      path, json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void write_json_file(const std::string& path, const nlohmann::json& json) {
  write_file_atomically(path,
                        json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

nlohmann::json read_json_file(const std::string& path) {
  if (const auto what = why_no_file(path); !what.empty())
    throw RunFileError(fmt::format("{}: is {}, not a file", path, what));
  const std::string text = read_text(path);
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    fail_parse(path, text, error);
  }
}

}  // namespace peakbench::result

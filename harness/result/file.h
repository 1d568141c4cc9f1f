// Files that hold results: written whole or not at all, read with errors that say what is wrong
// with the file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace peakbench::result {

// Writes a temporary file beside `path`, flushes it to the disk and renames it: a reader sees the
// old file or the new one, and a failure leaves the old one. Throws ConfigError with the path and
// the reason (not writable, disk full).
void write_file_atomically(const std::string& path, std::string_view bytes);

// The same, indented by two; invalid UTF-8 becomes U+FFFD.
void write_json_file(const std::string& path, const nlohmann::ordered_json& json);
void write_json_file(const std::string& path, const nlohmann::json& json);

// Throws RunFileError: missing, not readable, cut short, not JSON (line and column).
nlohmann::json read_json_file(const std::string& path);

// Writes all of `bytes`, through interruptions. `path` is for the message of the ConfigError.
void write_all(int descriptor, std::string_view bytes, const std::string& path);

}  // namespace peakbench::result

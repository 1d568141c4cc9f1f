// Files of results: written atomically, read with errors that name the problem.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace peakbench::files {

// By AtomicFile: a reader sees the old file or the new one, and a failure leaves the old one.
// `durable`: on the disk when it returns. Throws ConfigError with the path and the reason (not
// writable, disk full).
void write_file_atomically(const std::string& path, std::string_view bytes, bool durable = true);

// The same, indented by two; invalid UTF-8 becomes U+FFFD.
void write_json_file(const std::string& path, const nlohmann::ordered_json& json);
void write_json_file(const std::string& path, const nlohmann::json& json);

// Throws RunFileError with the path: what read_regular_file() and parse_json() say.
nlohmann::json read_json_file(const std::string& path);

// All of its bytes, whatever it is; empty where it cannot be read. For files of our own.
std::string text_of(const std::string& path);

// False too where that cannot be found out (no permission, too long a name); neither throws.
bool is_folder(const std::string& path);
bool is_there(const std::string& path);  // a link without its target does

// Of what is in it, in no order; none, or not all, where that cannot be read.
std::vector<std::string> names_in(const std::string& folder);

// Why it is unknown whether something exists: mostly a folder above that may not be entered. Empty
// if it is known.
std::string why_hidden(const std::string& path);

// True for an empty folder, and where there is nothing.
bool holds_nothing(const std::string& path);

// "a folder", "a named pipe", ...; empty for a file, and for what is not there. What is no file may
// never end, or wait for ever.
std::string why_no_file(const std::string& path);

// With its parents. Throws HostError with the reason (a file in the way, a full disk, too long a
// name).
void make_folder(const std::string& path);

// Nothing happens if it does not exist. Throws HostError with the reason.
void remove_file(const std::string& path);

// Writes all of `bytes`, through interruptions. `path` is for the message of the ConfigError.
void write_all(int descriptor, std::string_view bytes, const std::string& path);

}  // namespace peakbench::files

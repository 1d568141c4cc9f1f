// Where libraries that are compiled here are kept. They are loaded into the user's programs later,
// so nobody else may be able to put one there.
#pragma once

#include <filesystem>
#include <string>

namespace peakbench::pytorch {

// $XDG_CACHE_HOME/peakbench/KIND, else ~/.cache/peakbench/KIND. Throws ConfigError where neither
// variable names a folder.
std::filesystem::path cache_folder(const std::string& kind);

// Makes a folder of cache_folder(), with its parents, for this user alone, whatever the umask; one
// of ours that others may enter is closed to them. Throws ConfigError where it cannot be made, or
// is another user's.
void make_cache_folder(const std::filesystem::path& folder);

// Why what lies in the cache is not to be used: others can write to it, or it is theirs. Of a link
// only whose it is counts. Empty where it may be.
std::string why_not_trusted(const std::filesystem::path& path);

// The same of a file that is to be loaded: others can write to it, or it is theirs. Empty where
// it may be.
std::string why_not_loaded(const std::filesystem::path& library);

}  // namespace peakbench::pytorch

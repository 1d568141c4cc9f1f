// A plugin's shared library, or, where the file is none, the text of a plugin.json.
#include "planning/manifest.h"

#include "base/errors.h"
#include "planning/read_manifest.h"
#include "readers/readers.h"

namespace peakbench::hostile {

void read_manifest_file(const std::string& path) {
  const auto text = text_of(path);
  if (!text.starts_with("\x7f"
                        "ELF")) {
    if (!planning::problems_in(text).empty()) throw PluginError("no manifest");
    return;
  }
  const auto plugin = planning::read_plugin(path);
  planning::compare(plugin.stamp, planning::own_stamp());
}

}  // namespace peakbench::hostile

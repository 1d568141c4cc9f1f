// A plugin's shared library, or, where the file is none, the text of a plugin.json.
#include "manifest/manifest.h"

#include "errors/errors.h"
#include "manifest/read_manifest.h"
#include "readers/readers.h"

namespace peakbench::hostile {

void read_manifest_file(const std::string& path) {
  const auto text = text_of(path);
  if (!text.starts_with("\x7f"
                        "ELF")) {
    if (!manifest::problems_in(text).empty()) throw PluginError("no manifest");
    return;
  }
  const auto plugin = manifest::read_plugin(path);
  manifest::compare(plugin.stamp, manifest::own_stamp());
}

}  // namespace peakbench::hostile

// What a policy lets pass, as every option of it.
#include "base/errors.h"
#include "readers/readers.h"
#include "records/gate_policy.h"

namespace peakbench::hostile {

void read_policy(const std::string& path) {
  const auto text = text_of(path);
  bool taken = false;
  for (const auto& key : records::gate_keys()) {
    try {
      records::GatePolicy policy;
      records::set_gate(policy, key, text, key);
      policy.allocated.allowed(std::int64_t{1} << 62);
      records::to_json(policy);
      taken = true;
    } catch (const ConfigError&) {
    }
  }
  if (!taken) throw ConfigError("no option takes this");
}

}  // namespace peakbench::hostile

// What a policy lets pass, as every option of it.
#include "errors/errors.h"
#include "readers/readers.h"
#include "result/gate_policy.h"

namespace peakbench::hostile {

void read_policy(const std::string& path) {
  const auto text = text_of(path);
  bool taken = false;
  for (const auto& key : result::gate_keys()) {
    try {
      result::GatePolicy policy;
      result::set_gate(policy, key, text, key);
      policy.allocated.allowed(std::int64_t{1} << 62);
      result::to_json(policy);
      taken = true;
    } catch (const ConfigError&) {
    }
  }
  if (!taken) throw ConfigError("no option takes this");
}

}  // namespace peakbench::hostile

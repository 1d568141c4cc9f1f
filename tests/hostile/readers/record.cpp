#include "reports/fidelity/record.h"

#include "readers/readers.h"
#include "reports/fidelity/table.h"

namespace peakbench::hostile {

void read_record(const std::string& path) {
  const auto records = fidelity::read_records(path);
  fidelity::to_json(records);
  fidelity::to_text(records, 80);
}

}  // namespace peakbench::hostile

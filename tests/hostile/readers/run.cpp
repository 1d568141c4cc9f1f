// A run.json: read, written again, and as every report sees it.
#include "records/run.h"

#include "readers/readers.h"
#include "reports/run/report.h"
#include "reports/run/view.h"

namespace peakbench::hostile {

void read_run_file(const std::string& path) {
  const auto run = records::read_run(path);
  records::run_from_json(records::to_json(run));
  reports::main_table(run, 100);
  reports::make_view({run});
}

}  // namespace peakbench::hostile

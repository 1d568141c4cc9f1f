// A run.json: read, written again, and as every report sees it.
#include "result/run.h"

#include "readers/readers.h"
#include "reports/report/report.h"
#include "reports/report/view.h"

namespace peakbench::hostile {

void read_run_file(const std::string& path) {
  const auto run = result::read_run(path);
  result::run_from_json(result::to_json(run));
  reports::main_table(run, 100);
  reports::make_view({run});
}

}  // namespace peakbench::hostile

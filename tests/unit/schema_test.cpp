// run.schema.json against what is written, and docs/reference/run_json.md against the schema.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "base/file.h"
#include "support/example_run.h"
#include "support/scratch.h"

namespace peakbench {
namespace {

using nlohmann::json;
using testing::example_run;
using testing::ScratchFolder;

void collect_names(const json& schema, std::set<std::string>& names) {
  if (!schema.is_structured()) return;
  if (schema.is_object() && schema.contains("properties")) {
    for (const auto& [name, part] : schema["properties"].items()) names.insert(name);
  }
  for (const auto& part : schema) collect_names(part, names);
}

TEST(Schema, EveryFieldIsInTheDocs) {
  const auto docs = testing::read_text(PEAKBENCH_SOURCE_DIR "/docs/reference/run_json.md");
  std::set<std::string> names;
  collect_names(files::read_json_file(PEAKBENCH_SOURCE_DIR "/harness/records/run.schema.json"),
                names);
  EXPECT_GT(names.size(), 60u);
  for (const auto& name : names) {
    EXPECT_NE(docs.find("`" + name + "`"), std::string::npos) << name;
  }
}

int validate(const std::string& run_json) {
  const char* oracle = std::getenv("PEAKBENCH_ORACLE");
  const std::string command = std::string(oracle ? oracle : PEAKBENCH_PYTHON) +
                              " " PEAKBENCH_SOURCE_DIR
                              "/tests/unit/check_schema.py " PEAKBENCH_SOURCE_DIR
                              "/harness/records/run.schema.json " +
                              run_json;
  return WEXITSTATUS(std::system(command.c_str()));
}

TEST(Schema, DescribesWhatIsWritten) {
  const ScratchFolder folder;
  const std::string path = folder / "run.json";
  auto run = example_run();
  auto bare = run.cases[0];
  bare.memory.reset();
  bare.throughput.reset();
  bare.equivalence.reset();
  bare.out_of_memory.reset();
  bare.emulation.reset();
  bare.spec.sequence_length.reset();
  bare.losses = {std::nan("")};
  run.cases.push_back(bare);
  auto program = bare;
  program.spec.kind = records::CaseKind::kProgram;
  program.spec.strategies.clear();
  run.cases.push_back(program);
  auto python = bare;
  python.spec.kind = records::CaseKind::kPython;
  python.spec.dtype.clear();
  python.spec.batch_size = records::kUnknownBatch;
  run.cases.push_back(python);
  write_run(run, folder.path());
  const int valid = validate(path);
  if (valid == 77) GTEST_SKIP() << "the Python package jsonschema is not installed";
  EXPECT_EQ(valid, 0);
  json wrong = json(to_json(run));
  wrong["cases"][0]["memory"]["peak_allocated_bytes"] = 1.5;
  files::write_json_file(path, wrong);
  EXPECT_EQ(validate(path), 1);
  wrong = json(to_json(run));
  wrong["cases"][0]["strategies"] = json::array();
  files::write_json_file(path, wrong);
  EXPECT_EQ(validate(path), 1) << "only a program has none";
  wrong = json(to_json(run));
  wrong["cases"][0]["undescribed"] = 1;
  files::write_json_file(path, wrong);
  EXPECT_EQ(validate(path), 1);
}

}  // namespace
}  // namespace peakbench

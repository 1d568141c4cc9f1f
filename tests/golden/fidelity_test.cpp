// The page of fidelity, byte for byte, and the list of its fields.
#include <gtest/gtest.h>

#include <filesystem>

#include "golden/files.h"
#include "reports/fidelity/table.h"
#include "reports/fidelity/view.h"

namespace peakbench::golden {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecords = R"json({"schema": "peakbench.fidelity/1", "records": [
  {"figure": {"metric": "peak_allocated", "value": 11267745280, "unit": "bytes"},
   "source": {"name": "A | publisher", "url": "https://example.org/a"}, "card": "a100-80gb",
   "configuration": {"model": "vit-l-16", "strategy": "baseline", "dtype": "bf16", "batch_size": 8},
   "grade": "same_configuration",
   "emulated": {"bytes": 11267745280, "phase": "optimizer_step", "date": "2026-11-23"}},
  {"figure": {"metric": "peak_reserved", "value": 10.5, "unit": "GiB"},
   "source": {"name": "A | publisher"}, "card": "h100-80gb",
   "configuration": {"program": ["tests/train.py", "--batch", "4"]},
   "grade": "same_law", "cause": "data", "explanation": "Its samples are *shorter*.",
   "emulated": {"bytes": 12884901888, "phase": "backward", "at_peak": "activations", "date": "2026-11-23"}},
  {"figure": {"metric": "peak_memory", "value": 12, "unit": "GB"},
   "source": {"name": "Another", "url": "javascript:alert(1)"}, "card": "t4-16gb",
   "configuration": {"model": "gpt2", "strategy": "lora", "dtype": "fp32", "batch_size": 1, "sequence_length": 64},
   "grade": "other_versions"},
  {"figure": {"metric": "peak_allocated", "value": 11267745280, "unit": "bytes"},
   "source": {"name": "A | publisher"}, "card": "a100-80gb",
   "configuration": {"program": ["tests/train.py", "--batch", "8"]},
   "grade": "same_configuration",
   "device_memory": {"value": 15116, "unit": "MiB"},
   "steps": [{"changed": "a *norm* of one kernel", "arguments": ["--like-case", "norm"], "bytes": 11267741000, "phase": "backward"},
             {"changed": "the loss in | chunks", "arguments": ["--like-case", "norm,loss"], "bytes": 11267745280, "phase": "optimizer_step"}],
   "emulated": {"bytes": 11267741184, "phase": "backward", "peak_used_bytes": [14898167808], "date": "2026-11-24"}},
  {"figure": {"metric": "peak_allocated", "value": 24000, "unit": "MiB", "rounded_to": 1000, "printed": "24 GB"},
   "source": {"name": "Another"}, "card": "a100-80gb",
   "configuration": {"program": ["tests/loss.py"]}, "measures": "operator", "grade": "same_configuration",
   "emulated": {"bytes": 25165825024, "phase": "forward", "date": "2026-11-24"}},
  {"figure": {"metric": "peak_memory", "value": 4.8, "unit": "GB"},
   "source": {"name": "Another", "note": "6 GB less 1.2"}, "card": "a100-80gb",
   "configuration": {"model": "vit-l-16", "strategy": "foreach-off", "dtype": "fp32", "batch_size": 1},
   "grade": "computed",
   "emulated": {"bytes": 4927816192, "phase": "optimizer_step", "date": "2026-11-24"}}],
 "not_rebuilt": [{"source": "Third", "url": "https://example.org/c", "figures": 1200, "reason": "needs 512 cards"}]})json";

TEST(FidelityPage, IsAsExpected) {
  const auto page =
      fidelity::page(fidelity::records_from(kRecords, "FILE"),
                     {.template_directory = "", .builtin_template_directory = PEAKBENCH_TEMPLATES});
  const auto path = fs::path(PEAKBENCH_GOLDEN) / "expected/fidelity.md";
  if (updating()) write_text(path, page);
  EXPECT_EQ(page, read_text(path)) << "PEAKBENCH_UPDATE_GOLDEN=1 writes it anew";
}

TEST(FidelityFields, DocumentsListThem) {
  const auto path = fs::path(PEAKBENCH_DOCS) / "reference/fidelity_fields.md";
  const std::string marker = "<!-- fields -->\n";
  auto text = read_text(path);
  const auto at = text.find(marker);
  ASSERT_NE(at, std::string::npos);
  const auto list = reports::fields_as_markdown(reports::fields_of<fidelity::PageView>());
  if (updating()) {
    text = text.substr(0, at + marker.size()) + list;
    write_text(path, text);
  }
  EXPECT_EQ(text.substr(at + marker.size()), list) << "PEAKBENCH_UPDATE_GOLDEN=1 writes it anew";
}

}  // namespace
}  // namespace peakbench::golden

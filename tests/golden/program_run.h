// A run of one program, with its trace in a folder.
#pragma once

#include <string>

#include "records/run.h"
#include "support/fake_program.h"
#include "trace/summary.h"
#include "trace/trace_file.h"

namespace peakbench::golden {

struct ProgramRun {
  bool leaks = true;        // appends losses, and validates with gradients
  bool many_lines = false;  // that hold a little each
  bool trainer = false;     // one line that calls a library holds most
  bool hostile = false;     // names with markup and control characters
};

inline trace::Trace program_trace(const ProgramRun& how) {
  trace::FakeProgram program;
  constexpr auto kMiB = trace::FakeProgram::kMiB;
  program.after = [how](trace::FakeProgram& one, int step) {
    auto& fake = one.fake;
    if (how.leaks) fake.from({one.main(30)}).alloc(24 * kMiB - 100, 24 * kMiB);
    if (how.many_lines)
      for (int line = 100; line < 130; ++line)
        fake.from({one.main(line)}).alloc((200 - line) * 8192 + step);
    if (how.trainer && step == 0) {
      const auto library = [&](const char* file, const char* function, int line) {
        return fake.frame(std::string("/env/lib/python3.12/site-packages/transformers/") + file,
                          function, line);
      };
      const auto train = library("trainer.py", "train", 1412);
      fake.from({one.main(31), train, library("loss/loss_utils.py", "fixed_cross_entropy", 42),
                 one.torch("cross_entropy")})
          .alloc(400 * kMiB);
      fake.from({one.main(31), train,
                 library("models/llama/modeling_llama.py", "apply_rotary_pos_emb", 147)})
          .alloc(200 * kMiB);
    }
    if (how.hostile)
      fake.from({fake.frame("/home/me/vit/<img src=x>\x1b[31m.py", "[x](javascript:y)|<img>", 7)})
          .alloc(64 * kMiB);
    if (step + 1 < one.steps) return;
    const auto validate = fake.frame("/home/me/vit/eval.py", "validate", 12);
    fake.within({"epoch"}).within({"epoch", how.hostile ? "<img src=x>\x1b[31m" : "validation"});
    one.evaluate(step, how.leaks)
        .from({one.main(33), validate, one.model(12), one.torch("linear")});
    const auto hidden = fake.alloc(how.leaks ? 90 * kMiB : 10 * kMiB);
    fake.from({one.main(33), validate, one.model(14), one.torch("gelu")});
    const auto out = fake.alloc(how.leaks ? 45 * kMiB : kMiB);
    fake.from({}).free(fake.alloc(3 * kMiB));
    fake.within({"epoch"}).checkpoint(step).from({one.main(36)});
    fake.free(hidden).free(out).free(fake.alloc(kMiB));
  };
  auto trace = program.run();
  trace.device = "emulated:h100-80gb";
  trace.emulated = true;
  return trace;
}

inline records::Run program_run(const std::string& folder, const ProgramRun& how) {
  const auto trace = program_trace(how);
  trace::write_trace(trace, folder + "/program.sqlite");
  records::CaseResult result;
  result.spec.kind = records::CaseKind::kProgram;
  result.spec.model.id = "train.py";
  result.spec.id = "train.py/program/emulated:h100-80gb";
  result.spec.slug = "train-py";
  result.spec.device = "emulated:h100-80gb";
  result.spec.dtype = "";
  result.memory = trace::summarise(trace);
  result.ranks = {{0, result.memory, "program.sqlite"}};
  records::Emulation emulation;
  emulation.card = "NVIDIA H100 80GB HBM3";
  result.emulation = emulation;
  records::Run run;
  run.title = "What train.py holds";
  run.created = "2026-11-25T14:05:06Z";
  run.cases = {result};
  return run;
}

}  // namespace peakbench::golden

// Of stacks: what each part saves alone, and what the stack loses without it. Peaks only; the cases
// are rows of the table or were added for this.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/report/figures.h"
#include "reports/report/group.h"

namespace peakbench::reports {

struct AblationPartView {
  std::string part, others, alone_missing, without_missing;
  std::optional<DeltaView> alone, without;

  FieldValues fields() const {
    return {{"part", part, "The strategy"},
            {"others", others, "The stack without it"},
            {"alone", alone, "It alone against `bare`"},
            {"alone_missing", alone_missing, "Why there is no `alone`"},
            {"without", without, "`others` against the stack: what the stack loses"},
            {"without_missing", without_missing, "Why there is no `without`"}};
  }
};

struct AblationView {
  std::string strategy, number, bare;
  DeltaView together;
  std::optional<DeltaView> sum;
  std::vector<AblationPartView> parts;

  FieldValues fields() const {
    return {{"strategy", strategy, "The stack"},
            {"number", number, "Its row's"},
            {"bare", bare, "The stack without all its parts"},
            {"together", together, "The stack against `bare`"},
            {"sum", sum, "What the parts save alone, added up; absent unless all are known"},
            {"parts", parts, "Its strategies but the baseline"}};
  }
};

std::vector<AblationView> ablation_view(const Group& group);  // one a stack

}  // namespace peakbench::reports

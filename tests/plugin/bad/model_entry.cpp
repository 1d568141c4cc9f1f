// A strategy by its manifest, whose entry makes models.
#include "peakbench/plugin.h"

namespace {
std::unique_ptr<peakbench::Model> make(const peakbench::ModelContext&) { return nullptr; }
}  // namespace

PEAKBENCH_MODEL_PLUGIN(make)

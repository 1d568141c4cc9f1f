// The options of `peakbench run` that say on which machines: here, or those of Slurm.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "cluster/scheduled_run.h"

namespace peakbench::cli {

struct SlurmArguments {
  std::string executor = "local";
  cluster::SlurmOptions slurm;
  std::int64_t cases_per_task = 32, shared_delay_s = 60;
  std::string only_slurm;  // an option of Slurm's that was given; empty: none

  bool is_asked() const { return executor == "slurm"; }
};

void add_slurm_options(CLI::App& command, SlurmArguments& arguments);

// Throws ConfigError: an option that says nothing without --executor slurm, or that Slurm cannot
// take.
void check_slurm_arguments(const SlurmArguments& arguments);

cluster::ScheduledOptions scheduled_options(const SlurmArguments& arguments,
                                            const launch::SessionOptions& session);

}  // namespace peakbench::cli

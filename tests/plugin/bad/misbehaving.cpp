// A plugin whose code goes wrong in every way that its manifest cannot show.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cfenv>
#include <chrono>
#include <clocale>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "peakbench/plugin.h"

namespace {

void spin() {
  for (volatile bool forever = true; forever;) {
  }
}

int depth(int level) {
  volatile char room[4096];
  room[level % 4096] = 1;
  return level < 0 ? 0 : depth(level + 1) + room[level % 4096];
}

void block_signals() {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  for (const int number : {SIGTERM, SIGINT, SIGSEGV, SIGABRT}) signal(number, SIG_IGN);
}

void change_surroundings() {
  if (chdir("/") != 0) throw std::runtime_error("no root folder");
  umask(0277);
  std::setlocale(LC_ALL, "");
  std::fesetround(FE_UPWARD);
  clearenv();
}

// From a thread of its own, as long as the worker lives: half lines, empty ones and whole ones.
void flood_progress() {
  std::thread([] {
    const std::string half(4096, 'x'), whole = "\n{\"phase\": \"forward\", \"step\": 1}\n";
    const int progress = std::atoi(std::getenv("PEAKBENCH_PROGRESS_FD"));
    for (;;)
      for (const auto& bytes : {half, whole})
        if (write(progress, bytes.data(), bytes.size()) < 0) std::this_thread::yield();
  }).detach();
}

struct ThrowsInBackward : peakbench::Schedule {
  void prepare(peakbench::Training& training) override {
    training.on_gradient([](const peakbench::Parameter& parameter, const peakbench::Pass&) {
      throw std::runtime_error("thrown on purpose at " + parameter.name);
    });
  }
  void after_backward(peakbench::Training&) override {}
};

void apply(const peakbench::StrategyContext& context, peakbench::Recipe& recipe,
           peakbench::Model&) {
  const std::string& how = context.id;
  if (how == "reads-undeclared") context.options.integer("undeclared");
  if (how == "throws") throw std::runtime_error("thrown on purpose");
  if (how == "throws-number") throw 42;
  if (how == "throws-unsupported") throw peakbench::Unsupported("not with this model");
  if (how == "aborts") std::abort();
  if (how == "hangs") std::this_thread::sleep_for(std::chrono::hours(1));
  if (how == "throws-long") throw std::runtime_error(std::string(239'000'000, 'x'));
  if (how == "exits") std::exit(0);
  if (how == "exits-at-once") _exit(0);
  if (how == "raises") raise(SIGFPE);
  if (how == "overflows-stack") std::exit(depth(0));
  if (how == "closes-streams")
    for (const int number : {0, 1, 2}) close(number);
  if (how == "blocks-signals") block_signals();
  if (how == "floods-progress") flood_progress();
  if (how == "changes-surroundings") change_surroundings();
  if (how == "spins-at-exit") std::atexit(spin);
  if (how == "throws-in-backward") {
    recipe.schedule = std::make_shared<ThrowsInBackward>();
  }
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)

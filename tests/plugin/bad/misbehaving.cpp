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

class Misbehaving : public peakbench::Strategy {
 public:
  explicit Misbehaving(std::string how) : how_(std::move(how)) {}

  void apply(peakbench::Recipe& recipe, peakbench::Model& model) override {
    if (how_ == "throws") throw std::runtime_error("thrown on purpose");
    if (how_ == "throws-number") throw 42;
    if (how_ == "throws-unsupported") throw peakbench::Unsupported("not with this model");
    if (how_ == "aborts") std::abort();
    if (how_ == "hangs") std::this_thread::sleep_for(std::chrono::hours(1));
    if (how_ == "throws-long") throw std::runtime_error(std::string(239'000'000, 'x'));
    if (how_ == "exits") std::exit(0);
    if (how_ == "exits-at-once") _exit(0);
    if (how_ == "raises") raise(SIGFPE);
    if (how_ == "overflows-stack") std::exit(depth(0));
    if (how_ == "closes-streams")
      for (const int number : {0, 1, 2}) close(number);
    if (how_ == "blocks-signals") block_signals();
    if (how_ == "floods-progress") flood_progress();
    if (how_ == "changes-surroundings") change_surroundings();
    if (how_ == "spins-at-exit") std::atexit(spin);
    if (how_ == "throws-in-backward") {
      recipe.schedule = std::make_shared<ThrowsInBackward>();
    }
  }

 private:
  struct ThrowsInBackward : peakbench::Schedule {
    void prepare(peakbench::Training& training) override {
      training.on_gradient([](const peakbench::Parameter& parameter, const peakbench::Pass&) {
        throw std::runtime_error("thrown on purpose at " + parameter.name);
      });
    }
    void after_backward(peakbench::Training&) override {}
  };

  std::string how_;
};

std::unique_ptr<peakbench::Strategy> make(const peakbench::StrategyContext& context) {
  if (context.id == "makes-nothing") return nullptr;
  if (context.id == "reads-undeclared") context.options.integer("undeclared");
  return std::make_unique<Misbehaving>(context.id);
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(make)

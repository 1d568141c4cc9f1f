// A plugin whose code goes wrong in every way that its manifest cannot show.
#include <chrono>
#include <cstdlib>
#include <thread>

#include "peakbench/plugin.h"

namespace {

class Misbehaving : public peakbench::Strategy {
 public:
  explicit Misbehaving(std::string how) : how_(std::move(how)) {}

  void apply(peakbench::Recipe& recipe, peakbench::Model& model) override {
    if (how_ == "throws") throw std::runtime_error("thrown on purpose");
    if (how_ == "throws-number") throw 42;
    if (how_ == "throws-unsupported") throw peakbench::Unsupported("not with this model");
    if (how_ == "aborts") std::abort();
    if (how_ == "hangs") std::this_thread::sleep_for(std::chrono::hours(1));
    if (how_ == "throws-in-backward") {
      recipe.schedule = std::make_shared<ThrowsInBackward>();
    }
  }

 private:
  struct ThrowsInBackward : peakbench::Schedule {
    void prepare(peakbench::Training& training) override {
      training.on_gradient(0, [](const peakbench::Parameter& parameter) {
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

// A worker that can be forked: `--serve` as harness/worker/main.cpp has it, and what it runs is the
// script PEAKBENCH_FAKE_WORKER, or what the tests of the server itself ask for.
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "host/serve.h"

namespace {

int run(const std::vector<std::string>& arguments) {
  if (arguments.at(0) == "--print") {
    const char* value = std::getenv(arguments.at(1).c_str());
    std::printf("%s\n", value != nullptr ? value : "not set");
    return 0;
  }
  std::vector<char*> words{const_cast<char*>(PEAKBENCH_FAKE_WORKER)};
  for (const auto& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  execv(words[0], words.data());
  std::perror(words[0]);
  return 127;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() != 1 || arguments[0] != "--serve") return run(arguments);
  if (std::getenv("PEAKBENCH_TEST_THREAD") != nullptr)
    std::thread([] { std::this_thread::sleep_for(std::chrono::hours(1)); }).detach();
  peakbench::process::serve({[] {
                               const char* objection = std::getenv("PEAKBENCH_TEST_OBJECTION");
                               return std::string(objection != nullptr ? objection : "");
                             },
                             run});
}

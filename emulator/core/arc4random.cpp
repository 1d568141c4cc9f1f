// libstdc++ is inside the stand-ins, and asks glibc for this function, which came with 2.36. With
// one of our own they run where a PyTorch for older systems does.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) std::abort();
  return number;
}

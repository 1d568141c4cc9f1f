// The functions at addresses of code, beside dladdr.
#include "core/symbols.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstdint>
#include <string>
#include <vector>

namespace peakbench::emulator {
namespace {

struct Library {
  std::string path;
  std::uintptr_t begin, end;  // of its code
};

// Of this process; the program itself has no path.
std::vector<Library> libraries() {
  std::vector<Library> found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& header = info->dlpi_phdr[i];
          if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
          const auto begin = info->dlpi_addr + header.p_vaddr;
          static_cast<std::vector<Library>*>(data)->push_back(
              {info->dlpi_name, begin, begin + header.p_memsz});
        }
        return 0;
      },
      &found);
  return found;
}

const void* pointer(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

TEST(Symbols, AreThoseOfDladdrAtEveryPlaceOfEveryLibrary) {
  constexpr std::uintptr_t kStep = 509;  // prime: at beginnings, within and between functions
  std::size_t named = 0;
  const auto all = libraries();
  for (const Library& library : all) {
    std::vector<const void*> addresses;
    for (auto at = library.begin; at < library.end; at += kStep) addresses.push_back(pointer(at));
    const auto found = symbols_at(addresses.front(), addresses);
    for (const void* address : addresses) {
      Dl_info said{};
      ASSERT_NE(dladdr(address, &said), 0);
      EXPECT_EQ(found.path, said.dli_fname);
      const auto& function = found.functions.at(address);
      ASSERT_EQ(function, said.dli_sname ? said.dli_sname : "") << library.path << " " << address;
      named += function.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(all.size(), 4U);
  EXPECT_GT(named, 1000U);
}

TEST(Symbols, OtherLibrariesAddressesAreLeftOut) {
  const void* const own = reinterpret_cast<const void*>(&libraries);
  const void* const other = dlsym(RTLD_DEFAULT, "getenv");
  const auto found = symbols_at(other, {own, other});
  EXPECT_EQ(found.functions.count(own), 0U);
  EXPECT_EQ(found.functions.at(other), "getenv");
}

TEST(Symbols, AnAddressInNoLibraryHasNoPath) {
  const int on_the_stack = 0;
  const auto found = symbols_at(&on_the_stack, {&on_the_stack});
  EXPECT_EQ(found.path, "");
  EXPECT_TRUE(found.functions.empty());
}

TEST(LiesIn, AsksForAFileByItsName) {
  const void* const code = dlsym(RTLD_DEFAULT, "getenv");
  EXPECT_TRUE(lies_in(code, "libc.so.6"));
  EXPECT_FALSE(lies_in(code, "libc.so"));
  EXPECT_FALSE(lies_in(code, "libstdc++.so.6"));
  EXPECT_FALSE(lies_in(reinterpret_cast<const void*>(&libraries), "libc.so.6"));
  EXPECT_FALSE(lies_in(nullptr, "libc.so.6"));
}

}  // namespace
}  // namespace peakbench::emulator

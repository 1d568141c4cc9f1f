#include "core/symbols.h"

#include <errno.h>
#include <link.h>

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace peakbench::emulator {
namespace {

using Address = ElfW(Addr);
using Symbol = ElfW(Sym);

Address address_of(const void* code) { return reinterpret_cast<Address>(code); }

// As the loader has it, copied out of dl_iterate_phdr: the lock that it holds stays held in a
// process that another thread forks meanwhile.
struct LoadedLibrary {
  const char* path;  // empty: the program itself
  Address base;      // that its addresses are counted from
  std::span<const ElfW(Phdr)> headers;
};

bool holds(const LoadedLibrary& library, Address code) {
  return std::ranges::any_of(library.headers, [&](const auto& header) {
    const auto begin = library.base + header.p_vaddr;
    return header.p_type == PT_LOAD && code >= begin && code - begin < header.p_memsz;
  });
}

std::optional<LoadedLibrary> library_at(Address code) {
  struct Search {
    Address code;
    std::optional<LoadedLibrary> found;
  } search{code, std::nullopt};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        const LoadedLibrary library{
            info->dlpi_name, info->dlpi_addr, {info->dlpi_phdr, info->dlpi_phnum}};
        if (!holds(library, wanted.code)) return 0;
        wanted.found = library;
        return 1;
      },
      &search);
  return search.found;
}

// What a library's dynamic section points to.
struct Tables {
  const Symbol* symbols = nullptr;
  const char* names = nullptr;
  std::size_t names_size = 0;
  const std::uint32_t *gnu_hash = nullptr, *hash = nullptr;
};

Tables tables_of(const LoadedLibrary& library) {
  Tables tables;
  const auto dynamic = std::ranges::find_if(
      library.headers, [](const auto& header) { return header.p_type == PT_DYNAMIC; });
  if (dynamic == library.headers.end()) return tables;
  // glibc has made addresses of these, but where it could not write to them (the kernel's vdso).
  const auto at = [&](const ElfW(Dyn) & entry) {
    const Address value = entry.d_un.d_ptr;
    return value < library.base ? library.base + value : value;
  };
  for (auto* entry = reinterpret_cast<const ElfW(Dyn)*>(library.base + dynamic->p_vaddr);
       entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB:
        tables.symbols = reinterpret_cast<const Symbol*>(at(*entry));
        break;
      case DT_STRTAB:
        tables.names = reinterpret_cast<const char*>(at(*entry));
        break;
      case DT_STRSZ:
        tables.names_size = entry->d_un.d_val;
        break;
      case DT_GNU_HASH:
        tables.gnu_hash = reinterpret_cast<const std::uint32_t*>(at(*entry));
        break;
      case DT_HASH:
        tables.hash = reinterpret_cast<const std::uint32_t*>(at(*entry));
        break;
      default:
        break;
    }
  }
  return tables;
}

// The symbols that a library gives to others: no section says how many there are, but its hash
// table lists them.
std::span<const Symbol> exported(const Tables& tables) {
  if (!tables.symbols || !tables.names) return {};
  if (tables.gnu_hash) {
    const std::uint32_t* header = tables.gnu_hash;
    const std::uint32_t buckets = header[0], first = header[1], bloom_words = header[2];
    const auto* bucket = header + 4 + bloom_words * (sizeof(Address) / sizeof(std::uint32_t));
    const std::uint32_t* chain = bucket + buckets;
    const std::uint32_t last = *std::max_element(bucket, bucket + buckets);
    if (last < first) return {};
    std::uint32_t end = last;
    while ((chain[end - first] & 1U) == 0) ++end;  // the lowest bit ends a chain
    return {tables.symbols + first, tables.symbols + end + 1};
  }
  if (tables.hash) return {tables.symbols, tables.hash[1]};
  return {};
}

bool is_code(const Symbol& symbol) {
  return (symbol.st_shndx != SHN_UNDEF || symbol.st_value != 0) && symbol.st_shndx != SHN_ABS &&
         ELF64_ST_TYPE(symbol.st_info) != STT_TLS && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL;
}

struct Wanted {
  Address offset;  // in the library
  const void* code;
  const Symbol* symbol = nullptr;
};

// Which stretches of a library hold what is wanted. A hundred thousand symbols lie in others.
class Stretches {
 public:
  explicit Stretches(const std::vector<Wanted>& wanted) {
    for (const Wanted& one : wanted) {
      first_ = std::min(first_, one.offset);
      last_ = std::max(last_, one.offset);
    }
    while (!wanted.empty() && (last_ - first_) >> shift_ >= held_.size()) ++shift_;
    for (const Wanted& one : wanted) held_.set((one.offset - first_) >> shift_);
  }

  // False: nothing wanted lies in [begin, end).
  bool may_hold(Address begin, Address end) const {
    if (end <= first_ || begin > last_) return false;
    auto at = (std::max(begin, first_) - first_) >> shift_;
    const auto to = (std::min(end - 1, last_) - first_) >> shift_;
    while (!held_[at] && at < to) ++at;
    return held_[at];
  }

 private:
  Address first_ = ~Address{0}, last_ = 0;
  unsigned shift_ = 0;
  std::bitset<4096> held_;
};

// glibc's rules (elf/dl-addr.c): of the symbols that cover an address, the one that begins last.
std::map<const void*, std::string> find_functions(const LoadedLibrary& library,
                                                  const std::vector<const void*>& addresses) {
  std::vector<Wanted> wanted;
  for (const void* code : addresses)
    if (holds(library, address_of(code))) wanted.push_back({address_of(code) - library.base, code});
  const Stretches stretches(wanted);
  const auto tables = tables_of(library);
  for (const Symbol& symbol : exported(tables)) {
    const auto begin = symbol.st_value, end = begin + std::max<Address>(symbol.st_size, 1);
    if (!stretches.may_hold(begin, end)) continue;
    if (!is_code(symbol) || symbol.st_name >= tables.names_size) continue;
    for (Wanted& one : wanted) {
      const bool covers = one.offset >= begin && one.offset < end;
      if (covers && (!one.symbol || one.symbol->st_value < begin)) one.symbol = &symbol;
    }
  }
  std::map<const void*, std::string> functions;
  for (const Wanted& one : wanted)
    functions[one.code] = one.symbol ? tables.names + one.symbol->st_name : "";
  return functions;
}

}  // namespace

LibrarySymbols symbols_at(const void* address, const std::vector<const void*>& addresses) {
  const auto library = library_at(address_of(address));
  if (!library) return {};
  return {.path = library->path[0] ? library->path : program_invocation_name,
          .functions = find_functions(*library, addresses)};
}

bool lies_in(const void* code, const char* name) {
  const auto library = library_at(address_of(code));
  return library && std::strcmp(::basename(library->path), name) == 0;
}

}  // namespace peakbench::emulator

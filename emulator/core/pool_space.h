// The addresses of one memory pool: its chunks, and which pieces of them are free.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace peakbench::emulator {

class PoolSpace {
 public:
  void add_chunk(std::uint64_t base, std::uint64_t bytes);
  // The smallest free piece that is large enough gives them, the lowest of several; 0: none is.
  std::uint64_t take(std::uint64_t bytes);
  void give_back(std::uint64_t base, std::uint64_t bytes);
  // Takes out the largest chunk of which nothing is in use, its base and bytes.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> remove_free_chunk();
  // The chunk that an address of the pool lies in.
  std::pair<std::uint64_t, std::uint64_t> chunk_of(std::uint64_t address) const;
  std::uint64_t bytes() const { return bytes_; }
  bool in_use() const { return free_bytes_ != bytes_; }

 private:
  using Pieces = std::map<std::uint64_t, std::uint64_t>;  // base -> bytes

  Pieces chunks_, free_;  // free pieces do not reach over the end of a chunk
  std::uint64_t bytes_ = 0, free_bytes_ = 0;
};

}  // namespace peakbench::emulator

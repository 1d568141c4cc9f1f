// Which bytes of a small allocation were put there by a copy or a fill that the host asked for, and
// when. Of the others nothing is known: a kernel may have meant to write them, and no kernel runs
// here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace peakbench::emulator {

// "When" is the number of pieces of device work (launches, library calls) that had been asked for
// by then: a byte that is read with the same number is certainly what was put there; with a later
// one, a kernel may have been meant to change it.
class KeptBytes {
 public:
  void put(std::uint64_t offset, std::uint64_t bytes, std::uint64_t when);
  void forget(std::uint64_t offset, std::uint64_t bytes);
  // The oldest `when` of the bytes; nullopt when some were never put there.
  std::optional<std::uint64_t> since(std::uint64_t offset, std::uint64_t bytes) const;
  struct Piece {
    std::uint64_t offset, bytes, when;
  };
  // Which of the bytes were put there, in order.
  std::vector<Piece> pieces(std::uint64_t offset, std::uint64_t bytes) const;
  // Takes over what another allocation knows of the bytes that are copied from it. `from` may be
  // null: it knows of none.
  void copy(std::uint64_t to, const KeptBytes* from, std::uint64_t from_offset,
            std::uint64_t bytes);

 private:
  struct Run {
    std::uint64_t end;
    std::uint64_t when;
  };
  std::map<std::uint64_t, Run> runs_;  // by start; they do not overlap
};

}  // namespace peakbench::emulator

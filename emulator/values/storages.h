#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "core/values_hook.h"
#include "values/value.h"

namespace peakbench::values {

// Which storages of the device have a value, by address.

inline constexpr std::size_t kLargest = emulator::kLargestValue;
inline constexpr std::size_t kLargestKnown = emulator::kLargestHostValue;
inline std::size_t largest_of(at::ScalarType dtype) {
  return c10::isIntegralType(dtype, true) ? kLargestKnown : kLargest;
}

class Storages {
 public:
  static Storages& all();

  // Held while values are looked up, recorded and computed. PyTorch's allocator takes it while it
  // holds its own lock: nothing under it may allocate device memory.
  std::recursive_mutex& mutex() { return mutex_; }

  // Null when nothing is known of the storage that begins there.
  ValuePtr find(std::uint64_t base, std::size_t bytes) const;
  // The value that holds these bytes; `offset` is where they begin in it.
  ValuePtr find_bytes(std::uint64_t at, std::size_t bytes, std::size_t& offset) const;
  // The same, and where the storage begins; null and 0.
  ValuePtr find_storage(std::uint64_t at, std::size_t bytes, std::uint64_t& base) const;
  void put(std::uint64_t base, ValuePtr value);
  void forget(std::uint64_t base, std::size_t bytes);
  // A kernel about which nothing is known received this address, or a number that is no address.
  // Forgets the storage there, and those whose addresses it is known to contain.
  void may_be_written(std::uint64_t at);

 private:
  std::recursive_mutex mutex_;
  std::map<std::uint64_t, ValuePtr> values_;
};

// Kernels that were launched outside of operators (Triton, replayed graphs): they may have written
// anywhere.
std::uint64_t foreign_work();
void count_foreign_work();
bool overlaps(const Ranges& ranges, std::size_t begin, std::size_t end);
// Which of a value's bytes rest on substitutes, and whether any of these or of a view's do.
Ranges unsure_of(const Value& value);
bool is_unsure(const Value& value, std::size_t begin, std::size_t end);
bool is_unsure(const Value& value, const View& view);
// Whether a value is not certain; where it is, whether some of its bytes are not.
bool doubtful(const Value& value);
bool doubtful(const Value& value, std::size_t begin, std::size_t end);
bool doubtful(const Value& value, const View& view);
// Whether all bytes that were written are certain. Programs send and read whole buffers and use
// only their beginning; bytes that were never written do not matter.
bool known_where_written(const Value& value, std::size_t begin, std::size_t end);

// A dense tensor that is nothing but one: no subclass, no batch of a transform, no sparse one.
bool is_plain(const at::Tensor& tensor);
// Of another tensor, as DTensor and the tensors of vmap are: what is called on it is called again
// on what it wraps.
bool is_wrapper(const at::Tensor& tensor);
// A plain tensor whose storage has an address (one of no elements mostly has none), and shows it as
// it is.
bool has_storage(const at::Tensor& tensor);
// The same, or a conjugate or negative view.
bool can_be_read(const at::Tensor& tensor);
// The dense tensors of a sparse one, indices before values; none for other tensors.
std::vector<at::Tensor> parts_of(const at::Tensor& tensor);
// The bytes there are unknown from now on. For any tensor, plain or not.
void forget_storage(const at::Tensor& tensor);
std::uint64_t base_of(const at::Tensor& tensor);
std::size_t bytes_of(const at::Tensor& tensor);
// Whether there is nothing else in its storage.
bool covers_storage(const at::Tensor& tensor);

// Whose code called.

// Whether this code is in PyTorch's libraries of kernels. Inductor's launcher, which starts kernels
// compiled at run time, is in another one (libtorch_python.so).
bool is_pytorchs(const void* code);

}  // namespace peakbench::values

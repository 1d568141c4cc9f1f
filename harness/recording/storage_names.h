#pragma once

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "interpreter/python_api.h"

namespace peakbench::recording {

// The tracer's reader of Python objects: containers, tensors. The caller holds Python's lock.
// Except where noted, nothing here makes an object that Python's collector counts.

using namespace interpreter;

// While it lives, modes of the program's do not see what is asked of tensors.
class NoTorchFunction {
 public:
  NoTorchFunction();
  NoTorchFunction(const NoTorchFunction&) = delete;
  NoTorchFunction& operator=(const NoTorchFunction&) = delete;
  ~NoTorchFunction();

 private:
  at::impl::TorchFunctionDisabledState before_;
};

// Numbers of live objects. It does not notice an object in the place of a freed one.
class ObjectNumbers {
 public:
  std::optional<std::int32_t> find(void* object) const;
  // Of an object that takes no weak reference, nothing is remembered. The caller holds Python's
  // collector.
  void add(void* object, std::int32_t number);
  bool is_empty() const { return numbers_.empty(); }
  // The smallest number that none has which is alive.
  std::int32_t unused() const;

 private:
  struct Number {
    void* reference;
    std::int32_t value;
  };
  std::unordered_map<void*, Number> numbers_;
};

// Keys and values of a dict, or of what has items(): that makes objects.
template <typename Visit>
void each_item(void* container, const Visit& visit) {
  const Python& p = python();
  if (is_a(container, p.dict_type)) {
    std::ptrdiff_t at = 0;
    void *key = nullptr, *value = nullptr;
    while (p.dict_next(container, &at, &key, &value)) visit(key, value);
    return;
  }
  const auto items = attribute(container, "items");
  if (!items) return;
  const Owned listed(p.call_with(items.get(), nullptr));
  const Owned iterator(listed ? p.iterator(listed.get()) : nullptr);
  while (iterator) {
    const Owned pair(p.next(iterator.get()));
    if (!pair || !is_a(pair.get(), p.tuple_type) || p.tuple_size(pair.get()) != 2) break;
    visit(p.tuple_item(pair.get(), 0), p.tuple_item(pair.get(), 1));
  }
}

// Of a list or a tuple; false of anything else.
template <typename Visit>
bool each_part(void* sequence, const Visit& visit) {
  const Python& p = python();
  const bool is_list = is_a(sequence, p.list_type);
  if (!is_list && !is_a(sequence, p.tuple_type)) return false;
  const auto size = is_list ? p.list_size(sequence) : p.tuple_size(sequence);
  for (std::ptrdiff_t i = 0; i < size; ++i)
    visit(is_list ? p.list_item(sequence, i) : p.tuple_item(sequence, i));
  return true;
}

constexpr int kDeepestContainer =
    64;  // of containers within containers that tensors are looked for in

// The tensors in lists, tuples and dicts.
template <typename Visit>
void each_tensor(void* value, void* tensor_type, const Visit& visit, int depth = 0) {
  if (is_a(value, tensor_type)) return visit(value);
  if (depth >= kDeepestContainer) return;
  const auto inner = [&](void* part) { each_tensor(part, tensor_type, visit, depth + 1); };
  if (each_part(value, inner) || !is_a(value, python().dict_type)) return;
  each_item(value, [&](void*, void* part) { inner(part); });
}

// The tensor of a Python object; undefined if it has none.
at::Tensor tensor_of(void* object);

// What the program's storages are: parameters and buffers of its models, what its optimizers keep,
// what its models are given. The caller holds Python's lock.

// Of Python's side (python/peakbench_tracing.py), kept for as long as the process runs.
struct PythonSide {
  void *tensor, *parameter, *module;  // types
  void* parts_of;                     // the plain tensors inside a subclass
};
void set_python_side(const PythonSide& side);

// A model's module is called: its number, and that of all in it, are the numbers of their paths.
std::int32_t number_of_module(void* module, bool is_outermost);

// "[2, 3]" in the journal.
std::int32_t text_of_shape(const at::Tensor& tensor);

// Names the parameters and buffers of an outermost module; false where it has no parameter.
bool name_model(void* module);
void name_inputs(void* value);

// An optimizer's step begins: names what it reads, and gives the optimizer's number.
std::int32_t name_before_update(void* optimizer);
// It has ended, or raised, as when memory ran out in it: names the state it has made until then.
void name_updated();

}  // namespace peakbench::recording

#include "tracer/python_objects.h"

#include <set>

namespace peakbench::tracer {
namespace {

using TorchFunction = at::impl::PythonTorchFunctionTLS;

bool refers_to(void* reference, void* object) {
  const Python& p = python();
  if (!p.strong_referent) return p.referent(reference) == object;
  void* alive = nullptr;
  p.strong_referent(reference, &alive);
  if (alive) p.drop(alive);
  return alive == object;
}

}  // namespace

NoTorchFunction::NoTorchFunction() : before_(TorchFunction::get_disabled_state()) {
  TorchFunction::set_disabled_state(at::impl::TorchFunctionDisabledState::ALL_DISABLED);
}
NoTorchFunction::~NoTorchFunction() { TorchFunction::set_disabled_state(before_); }

std::optional<std::int32_t> ObjectNumbers::find(void* object) const {
  const auto found = numbers_.find(object);
  if (found == numbers_.end() || !refers_to(found->second.reference, object)) return std::nullopt;
  return found->second.value;
}

std::int32_t ObjectNumbers::unused() const {
  std::set<std::int32_t> used;
  for (const auto& [object, number] : numbers_)
    if (refers_to(number.reference, object)) used.insert(number.value);
  std::int32_t free = 0;
  while (used.contains(free)) ++free;
  return free;
}

void ObjectNumbers::add(void* object, std::int32_t number) {
  const UncountedObjects uncounted;
  const Python& p = python();
  void* const reference = p.new_reference(object, nullptr);
  if (!reference) return p.clear_error();
  const auto [place, is_new] = numbers_.try_emplace(object, Number{reference, number});
  if (!is_new) p.drop(std::exchange(place->second, Number{reference, number}).reference);
}

at::Tensor tensor_of(void* object) {
  const auto address = attribute(object, "_cdata");
  if (!address) return {};
  auto* const implementation = reinterpret_cast<c10::TensorImpl*>(python().number(address.get()));
  using Pointer = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  return at::Tensor(Pointer::reclaim_copy(implementation));
}

}  // namespace peakbench::tracer

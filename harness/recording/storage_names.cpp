#include "recording/storage_names.h"

#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "recording/tracer.h"

namespace peakbench::recording {
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

namespace {

using trace::Role;

constexpr auto kElsewhere = " of a parameter on ";  // as reports/analysis/findings.cpp reads it

PythonSide side;

struct Known {
  ObjectNumbers modules;     // -> the text of their path
  ObjectNumbers roots;       // -> the place of their prefix
  ObjectNumbers parameters;  // -> the place of their name
  ObjectNumbers optimizers;
  void* updating = nullptr;  // borrowed: the optimizer whose step goes on
  std::vector<std::string> texts;

  std::int32_t place_of(const std::string& text) {
    texts.push_back(text);
    return static_cast<std::int32_t>(texts.size()) - 1;
  }
};
Known& known() {
  static auto* const all = new Known;  // outlives the interpreter
  return *all;
}

JournalWriter& journal() { return Tracer::one().journal(); }

// As Module.named_modules(): each once, with its path.
template <typename Visit>
void each_module(void* module, std::string& path, std::unordered_set<void*>& seen,
                 const Visit& visit) {
  if (!seen.insert(module).second) return;
  visit(module, path);
  const auto parts = attribute(module, "_modules");
  if (!parts) return;
  each_item(parts.get(), [&](void* key, void* part) {
    if (part == python().none) return;
    const auto before = path.size();
    path += (before == 0 ? "" : ".") + utf8_of(key, "?");
    each_module(part, path, seen, visit);
    path.resize(before);
  });
}

// Whether a class names its tensors in its own way, as FullyShardedDataParallel does.
bool overrides(void* module, const char* method) {
  const auto own = attribute(type_of(module), method), usual = attribute(side.module, method);
  return own.get() != usual.get();
}

template <typename Visit>
void each_named_by(void* module, const char* method, const Visit& visit) {
  const Python& p = python();
  const auto function = attribute(module, method);
  const Owned generator(function ? p.call_with(function.get(), nullptr) : nullptr);
  const Owned iterator(generator ? p.iterator(generator.get()) : nullptr);
  while (iterator) {
    const Owned pair(p.next(iterator.get()));
    if (!pair || !is_a(pair.get(), p.tuple_type) || p.tuple_size(pair.get()) != 2) return;
    visit(utf8_of(p.tuple_item(pair.get(), 0), "?"), p.tuple_item(pair.get(), 1));
  }
}

// As Module.named_parameters() and named_buffers() do, where `table` is "_parameters", "_buffers".
template <typename Visit>
void each_named(void* module, const char* method, const char* table, const Visit& visit) {
  if (overrides(module, method)) return each_named_by(module, method, visit);
  std::unordered_set<void*> modules, tensors;
  std::string root;
  each_module(module, root, modules, [&](void* part, const std::string& path) {
    const auto tensors_of_part = attribute(part, table);
    if (!tensors_of_part) return;
    each_item(tensors_of_part.get(), [&](void* key, void* tensor) {
      if (tensor == python().none || !tensors.insert(tensor).second) return;
      visit((path.empty() ? "" : path + ".") + utf8_of(key, "?"), tensor);
    });
  });
}

// "float32", as Python calls it.
std::int32_t dtype_of(void* object) {
  const auto dtype = attribute(object, "dtype");
  const Owned text(dtype ? python().text(dtype.get()) : nullptr);
  std::string name = utf8_of(text.get(), "?");
  constexpr std::string_view kOwner = "torch.";
  if (name.starts_with(kOwner)) name.erase(0, kOwner.size());
  return journal().text(name);
}

void name_plain(void* object, Role role, std::int32_t name) {
  try {
    const auto tensor = tensor_of(object);
    if (!tensor.defined() || !tensor.has_storage()) return;
    const auto address = reinterpret_cast<std::uint64_t>(tensor.storage().data());
    if (address != 0)
      Tracer::one().name(address, role, name, text_of_shape(tensor), dtype_of(object));
  } catch (const std::exception&) {  // a tensor without memory: of no concern
  }
}

void name(void* object, Role role, const std::string& text) {
  const auto number = journal().text(text);
  void* const type = type_of(object);
  if (type == side.tensor || type == side.parameter) return name_plain(object, role, number);
  const Owned parts(python().call_with(side.parts_of, object, nullptr));
  if (parts) each_part(parts.get(), [&](void* part) { name_plain(part, role, number); });
}

std::string name_of_parameter(void* parameter) {
  const auto found = known().parameters.find(parameter);
  return found ? known().texts[static_cast<std::size_t>(*found)] : "";
}

bool is_tensor(void* object) { return is_a(object, side.tensor); }

// Of an optimizer that keeps its state elsewhere than its parameter.
std::string elsewhere(void* parameter, void* tensor) {
  constexpr int kNotEqual = 3;  // Py_NE
  const auto own = attribute(parameter, "device"), others = attribute(tensor, "device");
  if (!own || !others || python().differs(own.get(), others.get(), kNotEqual) != 1) return "";
  const Owned text(python().text(own.get()));
  return kElsewhere + utf8_of(text.get(), "?");
}

void name_state_of(void* parameter, void* state) {
  if (!is_a(state, python().dict_type)) return;
  const bool of_tensor = is_tensor(parameter);
  const auto owner = of_tensor ? name_of_parameter(parameter) : "";
  each_item(state, [&](void* key, void* value) {
    const Owned text(python().text(key));
    const auto own = utf8_of(text.get(), "?");
    each_tensor(value, side.tensor, [&](void* tensor) {
      const auto whose = owner.empty() ? own : owner + "." + own;
      name(tensor, Role::kOptimizerState,
           whose + (of_tensor ? elsewhere(parameter, tensor) : std::string()));
    });
  });
}

}  // namespace

void set_python_side(const PythonSide& given) {
  side = given;
  for (void* object : {side.tensor, side.parameter, side.module, side.parts_of})
    python().keep(object);
}

std::int32_t text_of_shape(const at::Tensor& tensor) {
  std::string shape;
  for (const auto size : tensor.sizes())
    shape += (shape.empty() ? "" : ", ") + std::to_string(size);
  return journal().text("[" + shape + "]");
}

std::int32_t number_of_module(void* module, bool is_outermost) {
  auto& all = known();
  if (const auto found = all.modules.find(module)) return *found;
  const auto type = attribute(type_of(module), "__name__");
  const auto name = utf8_of(type.get(), "?");
  const auto prefix = all.roots.is_empty() ? "" : name + ".";
  if (is_outermost) all.roots.add(module, all.place_of(prefix));
  std::unordered_set<void*> seen;
  std::string root;
  each_module(module, root, seen, [&](void* part, const std::string& path) {
    if (!all.modules.find(part))
      all.modules.add(part, journal().text(path.empty() ? name : prefix + path));
  });
  const auto found = all.modules.find(module);
  return found ? *found : journal().text(name);
}

bool name_model(void* module) {
  auto& all = known();
  const auto root = all.roots.find(module);
  const auto prefix = root ? all.texts[static_cast<std::size_t>(*root)] : "";
  bool any = false;
  each_named(module, "named_parameters", "_parameters", [&](const std::string& path, void* tensor) {
    any = true;
    if (!all.parameters.find(tensor)) all.parameters.add(tensor, all.place_of(prefix + path));
    name(tensor, Role::kParameter, prefix + path);
  });
  if (!any) return false;
  each_named(module, "named_buffers", "_buffers", [&](const std::string& path, void* tensor) {
    name(tensor, Role::kBuffer, prefix + path);
  });
  return true;
}

void name_inputs(void* value) {
  each_tensor(value, side.tensor, [](void* object) {
    if (is_a(object, side.parameter)) return;
    const auto tensor = tensor_of(object);
    if (tensor.defined() && tensor.is_leaf()) name(object, Role::kInput, "");
  });
}

std::int32_t name_before_update(void* optimizer) {
  auto& all = known();
  all.updating = optimizer;
  const auto groups = attribute(optimizer, "param_groups");
  const auto name_parameter = [&](void* parameter) {
    if (!is_tensor(parameter)) return;
    const auto own = name_of_parameter(parameter);
    name(parameter, Role::kParameter, own);
    const auto gradient = attribute(parameter, "grad");
    if (gradient && gradient.get() != python().none) name(gradient.get(), Role::kGradient, own);
  };
  if (groups)
    each_part(groups.get(), [&](void* group) {
      void* const parameters =
          is_a(group, python().dict_type) ? python().dict_item(group, "params") : nullptr;
      if (parameters) each_part(parameters, name_parameter);
    });
  if (const auto found = all.optimizers.find(optimizer)) return *found;
  const auto number = all.optimizers.unused();
  all.optimizers.add(optimizer, number);
  return number;
}

void name_updated() {
  auto& all = known();
  void* const optimizer = std::exchange(all.updating, nullptr);
  if (!optimizer || !all.optimizers.find(optimizer)) return;
  const auto states = attribute(optimizer, "state");
  if (states) each_item(states.get(), name_state_of);
}

}  // namespace peakbench::recording

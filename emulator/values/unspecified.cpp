#include "values/unspecified.h"

#include <algorithm>
#include <array>

#include "values/operators.h"

namespace peakbench::values {
namespace {

constexpr const char* kVectorSigns = "the sign of vectors";
constexpr const char* kEigenOrder = "the order of eigenvalues";
constexpr const char* kPivots = "the choice of pivots";

struct Factorisation {
  std::string_view name;
  int result;
  const char* what;
};
// torch.linalg: "the eigenvectors are not unique", "the QR decomposition is only unique up to the
// sign", "the LU decomposition with partial pivoting is not unique", and so on.
constexpr auto kFactorisations = std::to_array<Factorisation>({
    {"aten::_linalg_eigh", 1, kVectorSigns},
    {"aten::_linalg_svd", 0, kVectorSigns},
    {"aten::_linalg_svd", 2, kVectorSigns},
    {"aten::linalg_eig", -1, kEigenOrder},
    {"aten::linalg_eigvals", -1, kEigenOrder},
    {"aten::_linalg_eigvals", -1, kEigenOrder},
    {"aten::linalg_qr", -1, kVectorSigns},
    {"aten::geqrf", -1, kVectorSigns},
    {"aten::linalg_lu", -1, kPivots},
    {"aten::linalg_lu_factor_ex", 0, kPivots},
    {"aten::linalg_lu_factor_ex", 1, kPivots},
});

}  // namespace

const c10::IValue* argument_of(const Node& node, const Stack& arguments, std::string_view name) {
  if (!node.op->handle) return nullptr;
  const auto& schema = node.op->handle->schema().arguments();
  const auto at = std::ranges::find(schema, name, &c10::Argument::name) - schema.begin();
  const auto index = static_cast<std::size_t>(at);
  return index < schema.size() && index < arguments.size() ? &arguments[index] : nullptr;
}

void look_for_factors(std::string_view name, Found& found) {
  for (const Factorisation& one : kFactorisations)
    if (one.name == name) found.push_back({one.result, one.what});
}

std::vector<Unspecified> unspecified_in(const Node& node, const Stack& arguments,
                                        const Stack& results) {
  Found found;
  std::string_view name = node.op->name;
  if (name.ends_with('_')) name.remove_suffix(1);
  try {
    look_for_factors(name, found);
    look_for_ties(name, node, arguments, results, found);
    look_for_duplicates(name, node, arguments, results, found);
    look_for_rounding(name, node, arguments, found);
  } catch (const std::exception&) {  // a kind of number that the CPU compares none of
    found.push_back({-1, "which result it gives"});
  }
  return found;
}

}  // namespace peakbench::values

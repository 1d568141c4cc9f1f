#include "cli/named_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/errors.h"
#include "base/nearest.h"
#include "records/setting.h"

namespace peakbench::cli {
namespace {

using records::CaseResult;

std::string list_of(const std::vector<const CaseResult*>& cases) {
  constexpr std::size_t kMost = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(cases.size(), kMost); ++i)
    text += "\n  " + cases[i]->spec.id;
  if (cases.size() > kMost) text += fmt::format("\n  and {} more", cases.size() - kMost);
  return text;
}

}  // namespace

bool is_called(const records::CaseSpec& spec, const std::string& name) {
  return spec.id == name || spec.slug == name || records::stack_text(spec.strategies) == name;
}

const CaseResult& named_case(const records::Run& run, const NamedCase& named) {
  std::vector<const CaseResult*> serving, found;
  std::vector<std::string> ids;
  for (const CaseResult& result : run.cases) {
    if (!named.name.empty() && is_called(result.spec, named.name)) found.push_back(&result);
    if (named.serves(result)) serving.push_back(&result);
    ids.push_back(result.spec.id);
  }
  if (named.name.empty()) found = serving;
  if (found.empty() && (named.name.empty() || serving.empty()))
    throw ConfigError(fmt::format("{}: {}", named.run, named.no_case));
  if (found.empty())
    throw ConfigError(fmt::format("{}: no case \"{}\"{}; there are{}", named.run, named.name,
                                  suggestion(named.name, ids), list_of(serving)));
  if (found.size() > 1)
    throw ConfigError(fmt::format("{}: say which case, by its id:{}", named.run, list_of(found)));
  return *found.front();
}

}  // namespace peakbench::cli

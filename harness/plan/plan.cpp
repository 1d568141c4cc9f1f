#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "plan/axes.h"
#include "plan/case_id.h"
#include "plan/rules.h"
#include "result/device.h"

namespace peakbench::plan {
namespace {

using result::Status;

// One point of the product.
struct Point {
  const Choice& model;
  const std::string& device;
  const std::string& dtype;
  std::int64_t batch_size;
  std::optional<std::int64_t> sequence_length;
  const Stack& stack;
};

nlohmann::json typed_device_options(const std::map<std::string, std::string>& options) {
  auto json = nlohmann::json::object();
  for (const auto& [name, text] : options) json[name] = device_option_value(name, text);
  return json;
}

// Where nothing is computed a case takes a second: then more of them are no burden.
bool is_quick(const std::string& device) { return !result::device_from(device).computes_values; }

void decide(PlannedCase& planned, const manifest::Entry& model, const Stack& stack) {
  planned.reason = conflict_in(stack);
  if (!planned.reason.empty()) {
    planned.decided = Status::kConflict;
    return;
  }
  planned.reason = lack_of(model, stack);
  if (!planned.reason.empty()) planned.decided = Status::kUnsupported;
}

PlannedCase plan_case(const Point& point, const Request& request) {
  PlannedCase planned;
  auto& spec = planned.spec;
  spec.model = point.model.use.selection;
  spec.strategies = point.stack.selections;
  spec.device = point.device;
  spec.device_options = typed_device_options(request.device_options);
  spec.dtype = point.dtype;
  spec.batch_size = point.batch_size;
  spec.sequence_length = point.sequence_length;
  spec.seed = request.seed;
  spec.id = case_id(spec);
  spec.slug = slug(spec.id);
  planned.model = point.model.use;
  for (const auto& choice : point.stack.choices) planned.strategies.push_back(choice.use);
  planned.promise = promise_of(point.stack);
  planned.reference = reference_of(point.stack).selections;
  decide(planned, *point.model.offer.entry, point.stack);
  return planned;
}

// Only models with a sequence have lengths; without any asked for, the model's own.
std::vector<std::optional<std::int64_t>> lengths_of(const Choice& model, const Axes& axes) {
  const auto& entry = *model.offer.entry;
  if (!entry.has_sequence) return {std::nullopt};
  if (axes.sequence_lengths.empty()) return {entry.default_sequence_length};
  return {axes.sequence_lengths.begin(), axes.sequence_lengths.end()};
}

template <class Visit>
void each_point(const Axes& axes, const Visit& visit) {
  for (const auto& model : axes.models)
    for (const auto& device : axes.devices)
      for (const auto& dtype : axes.dtypes)
        for (const auto batch_size : axes.batch_sizes)
          for (const auto length : lengths_of(model, axes))
            for (const auto& stack : axes.stacks)
              visit(Point{model, device, dtype, batch_size, length, stack});
}

class Planner {
 public:
  Planner(const Request& request, const manifest::Found& plugins, const DeviceHook& devices)
      : request_(request), catalogue_(plugins), resolver_(request_, catalogue_, devices) {}

  Plan make() {
    check_numbers();
    resolver_.check_tables();
    const Axes axes = resolver_.axes();
    const auto excludes = read_excludes();
    add(axes, excludes);
    for (const auto& rule : request_.includes) add(include_axes(rule, resolver_, axes), {});
    if (plan_.cases.empty()) throw ConfigError(why_empty());
    add_shares(excludes);
    plan_.reference = stack_text(axes.stacks.empty() ? plan_.cases.front().spec.strategies
                                                     : axes.stacks.front().selections);
    plan_.request = request_;
    for (std::size_t i = 0; i < request_.published.size(); ++i) check_published(i);
    return std::move(plan_);
  }

 private:
  void check_numbers() const {
    const auto check = [&](const char* name, std::int64_t value, std::int64_t least,
                           std::int64_t most) {
      at_place(request_.where, name, [&] { check_integer(name, value, least, most); });
    };
    check("steps", request_.steps, 1, kMostSteps);
    check("warmup", request_.warmup, 0, kMostSteps);
    check("repetitions", request_.repetitions, 0, kMostRepetitions);
    check("timeout_s", request_.timeout_s, 1, kMostSeconds);
    check("memory_limit", request_.memory_limit_bytes, 0, kMostBytes);
    check("threads", request_.threads, 0, kMostThreads);
    for (const auto& [name, text] : request_.device_options) {
      at_place(request_.where, "device_options/" + name,
               [&name = name, &text = text] { device_option_value(name, text); });
    }
  }

  std::vector<Exclude> read_excludes() const {
    std::vector<Exclude> excludes;
    for (const auto& rule : request_.excludes) excludes.emplace_back(rule, resolver_);
    return excludes;
  }

  void add(const Axes& axes, const std::vector<Exclude>& excludes) {
    each_point(axes, [&](const Point& point) {
      const auto* planned = add(plan_case(point, request_), excludes);
      if (!planned || planned->decided || !request_.shares || !is_quick(point.device)) return;
      for (const auto& stack : subsets_for_shares(point.stack)) {
        auto subset = plan_case({point.model, point.device, point.dtype, point.batch_size,
                                 point.sequence_length, stack},
                                request_);
        subset.added_for = result::kAddedForShares;
        shares_.push_back(std::move(subset));
      }
    });
  }

  // nullptr where it is excluded or there already.
  const PlannedCase* add(PlannedCase planned, const std::vector<Exclude>& excludes) {
    const auto matches = [&](const Exclude& rule) { return rule.matches(planned.spec); };
    if (std::ranges::any_of(excludes, matches)) return nullptr;
    if (!ids_.insert(planned.spec.id).second) return nullptr;
    return &plan_.cases.emplace_back(std::move(planned));
  }

  // Once all that was asked for is known.
  void add_shares(const std::vector<Exclude>& excludes) {
    for (auto& subset : shares_) add(std::move(subset), excludes);
  }

  std::string why_empty() const {
    if (request_.models.empty()) return "nothing to run: no model is named";
    if (request_.strategies.empty()) return "nothing to run: no strategy is named";
    for (const auto& [name, empty] : {std::pair("device", request_.devices.empty()),
                                      std::pair("dtype", request_.dtypes.empty()),
                                      std::pair("batch size", request_.batch_sizes.empty())}) {
      if (empty) return fmt::format("nothing to run: no {} is named", name);
    }
    return "nothing to run: the excludes leave no case";
  }

  // Names in published figures are checked like others, so that none is silently not shown.
  void check_published(std::size_t index) {
    auto& figure = plan_.request.published[index];
    const auto place = [&](const char* field) {
      return fmt::format("published/{}/{}", index, field);
    };
    at_place(request_.where, place("model"),
             [&] { catalogue_.find(manifest::Kind::kModel, parse_selection(figure.model).id); });
    if (!figure.dtype.empty())
      at_place(request_.where, place("dtype"), [&] { resolver_.dtype("published", figure.dtype); });
    if (figure.strategy.empty()) return;
    at_place(request_.where, place("strategy"), [&] {
      figure.strategy =
          stack_text(make_stack(catalogue_, parse_stack(figure.strategy), {}).selections);
    });
  }

  const Request& request_;
  Catalogue catalogue_;
  Resolver resolver_;
  Plan plan_;
  std::vector<PlannedCase> shares_;
  std::set<std::string> ids_;
};

}  // namespace

Plan make_plan(const Request& request, const manifest::Found& plugins, const DeviceHook& devices) {
  return Planner(request, plugins, devices).make();
}

}  // namespace peakbench::plan

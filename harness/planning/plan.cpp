#include "planning/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <list>
#include <map>
#include <set>
#include <utility>

#include "base/nearest.h"
#include "planning/axes.h"
#include "planning/device.h"
#include "planning/selection.h"
#include "records/device.h"
#include "records/published.h"

namespace peakbench::planning {
namespace {

using records::Axis;
using records::Status;

// One point of the product; the setting has every axis but the stack.
struct Point {
  const Choice& model;
  const Stack& stack;
  const records::Setting& setting;
};

nlohmann::json typed_device_options(const std::map<std::string, std::string>& options) {
  auto json = nlohmann::json::object();
  for (const auto& [name, text] : options) json[name] = device_option_value(name, text);
  return json;
}

// Where nothing is computed a case takes a second: then more of them are no burden.
bool is_quick(const std::string& device) { return !records::device_from(device).computes_values; }

void decide(PlannedCase& planned, const planning::Entry& model, const Stack& stack) {
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
  static_cast<records::Setting&>(spec) = point.setting;
  spec.strategies = point.stack.selections;
  spec.device_options = typed_device_options(request.device_options);
  spec.seed = request.seed;
  spec.id = case_id(spec);
  spec.slug = slug(spec.id);
  planned.model = point.model.use;
  for (const auto& choice : point.stack.choices) planned.strategies.push_back(choice.use);
  planned.promise = promise_of(point.stack, request.checked_promises);
  planned.reference = reference_of(point.stack, request.checked_promises).selections;
  decide(planned, *point.model.offer.entry, point.stack);
  if (!planned.decided) planned.warning = unseen_memory(point.stack, request.steps);
  return planned;
}

// Only models with a sequence have lengths; without any asked for, the model's own.
Values lengths_of(const Choice& model, const Values& asked) {
  const auto& entry = *model.offer.entry;
  if (entry.has_sequence && !asked.empty()) return asked;
  Values own(1);
  if (entry.has_sequence) own[0].sequence_length = entry.default_sequence_length;
  return own;
}

Values values_for(const Choice& model, const records::AxisRow& row, const Axes& axes) {
  static const Values kNone;
  const auto found = axes.others.find(row.axis);
  const auto& asked = found == axes.others.end() ? kNone : found->second;
  static const Values kOneProcess(1);
  if (row.axis == Axis::kRanks && asked.empty()) return kOneProcess;
  return row.axis == Axis::kSequenceLength ? lengths_of(model, asked) : asked;
}

// Each of the settings with each of the values.
Values product(const Values& settings, const records::AxisRow& row, const Values& values) {
  Values all;
  for (const auto& setting : settings)
    for (const auto& value : values) row.copy(value, all.emplace_back(setting));
  return all;
}

// What a model is run with, whatever the stack.
Values settings_for(const Choice& model, const Axes& axes) {
  Values settings(1);
  settings[0].model = model.use.selection;
  for (const auto* row : records::asked_axes())
    if (row->axis != Axis::kModel && row->axis != Axis::kStrategy)
      settings = product(settings, *row, values_for(model, *row, axes));
  for (auto& setting : settings)
    if (!records::device_from(setting.device).caching_allocator) setting.allocator.clear();
  return settings;
}

template <class Visit>
void each_point(const Axes& axes, const Visit& visit) {
  for (const auto& model : axes.models)
    for (const auto& setting : settings_for(model, axes))
      for (const auto& stack : axes.stacks) visit(Point{model, stack, setting});
}

// What is planned with one build. Excludes are in the order of the request's.
struct With {
  With(const Request& request, std::span<const Build> builds, const Build& build)
      : build(build), catalogue(build.plugins), resolver(request, catalogue, builds, build) {}
  With(const With&) = delete;  // the resolver points to the catalogue
  With& operator=(const With&) = delete;

  const Build& build;
  Catalogue catalogue;
  Resolver resolver;
  Axes axes;
  std::vector<Exclude> excludes;
};

class Planner {
 public:
  Planner(const Request& request, std::span<const Build> builds) : request_(request) {
    for (const auto& build : builds) with_.emplace_back(request_, builds, build);
  }

  Plan make() {
    check_numbers();
    for (auto& with : with_) try {
        add_all(with);
      } catch (const ConfigError& error) {
        const auto name = with.build.torch + with.build.build;
        if (name.empty() || &with == &with_.front()) throw;  // of all, most likely
        throw ConfigError(fmt::format("{} (with {})", error.what(), name));
      }
    if (plan_.cases.empty() || (!has_stacks_ && needs_worker(request_)))
      throw ConfigError(why_empty());
    if (needs_worker(request_)) {
      check_ranks();
      check_allocator();
      check_sequence_lengths();
    }
    for (auto& [with, subset] : ablation_) add(*with, std::move(subset), with->excludes);
    if (with_.size() > 1) put_beside_each_other();
    const auto& stacks = first().axes.stacks;
    plan_.reference = stack_text(stacks.empty() ? plan_.cases.front().spec.strategies
                                                : stacks.front().selections);
    plan_.request = request_;
    for (std::size_t i = 0; i < request_.published.size(); ++i) check_published(i);
    if (!request_.suite_file.empty() && !request_.is_narrowed) check_use();
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

  const With& first() const { return with_.front(); }

  void add_all(With& with) {
    with.resolver.check_tables();
    with.axes = with.resolver.axes();
    for (const auto& rule : request_.excludes) with.excludes.emplace_back(rule, with.resolver);
    add(with, with.axes, with.excludes);
    for (const auto& rule : request_.includes)
      add(with, include_axes(rule, with.resolver, with.axes), {});
    for (const auto& program : request_.programs) add(with, program);
  }

  // The same case by each of the builds.
  void put_beside_each_other() {
    std::map<std::string, std::vector<PlannedCase>> alike;
    std::vector<std::vector<PlannedCase>*> in_order;
    for (auto& planned : plan_.cases) {
      auto& same = alike[id_in_one_build(planned.spec)];
      if (same.empty()) in_order.push_back(&same);
      same.push_back(std::move(planned));
    }
    plan_.cases.clear();
    for (auto* same : in_order) std::ranges::move(*same, std::back_inserter(plan_.cases));
  }

  void add(const With& with, const Axes& axes, const std::vector<Exclude>& excludes) {
    each_point(axes, [&](const Point& point) {
      const auto* planned = add(with, plan_case(point, request_), excludes);
      has_stacks_ = has_stacks_ || planned;
      if (!planned || planned->decided || !request_.ablation || !is_quick(point.setting.device))
        return;
      for (const auto& stack : subsets_for_ablation(point.stack)) {
        auto subset = plan_case({point.model, stack, point.setting}, request_);
        if (subset.decided) continue;  // nobody asked for it, and it would measure nothing
        subset.added_for = records::kAddedForAblation;
        ablation_.emplace_back(&with, std::move(subset));
      }
    });
  }

  void add(const With& with, const Program& program) {
    const bool own = !program.devices.empty();
    const auto section = own ? devices_section(program) : row_of(Axis::kDevice).asked->list;
    const auto& texts = own ? program.devices : request_.lists.at(Axis::kDevice);
    for (const auto& text : texts)
      for (const auto& value : devices_for(with.resolver, program, section, text)) {
        if (program.python) {
          for (const auto& one : program.python->cases) add(with, program, one, value.device);
          continue;
        }
        for (const auto& one : cases_of(program)) {
          PlannedCase planned;
          planned.spec.kind = records::CaseKind::kProgram;
          planned.spec.model = one.selection;
          planned.spec.device = value.device;
          planned.spec.batch_size = records::kUnknownBatch;
          planned.spec.id = case_id(planned.spec);
          planned.spec.slug = slug(planned.spec.id);
          planned.program = one.command;
          add(with, std::move(planned), {});
        }
      }
  }

  void add(const With& with, const Program& program, const PythonCase& one,
           const std::string& device) {
    PlannedCase planned;
    auto& spec = planned.spec;
    spec.kind = records::CaseKind::kPython;
    spec.model = one.model.selection;
    for (const auto& strategy : one.stack) spec.strategies.push_back(strategy.selection);
    spec.device = device;
    spec.batch_size = one.batch_size;
    spec.ranks = one.ranks;
    spec.global_batch_size = one.global_batch_size;
    spec.seed = request_.seed;
    spec.id = case_id(spec);
    spec.slug = slug(spec.id);
    planned.model = one.model;
    planned.strategies = one.stack;
    planned.promise = one.promise;
    planned.reference = one.reference;
    check_processes(program, one, device);
    planned.program = command_of(program, spec, request_.steps);
    add(with, std::move(planned), {});
  }

  // On the CPU each rank is a process that computes.
  static void check_processes(const Program& program, const PythonCase& one,
                              const std::string& device) {
    constexpr std::int64_t kMostProcesses = 64;
    if (!one.ranks || *one.ranks <= kMostProcesses || !records::device_from(device).is_host_memory)
      return;
    throw ConfigError(fmt::format(
        "{}: {} ranks on the CPU: each is a process that computes, and there may be {}; "
        "name an emulated card, like --device emulated:h100-80gb",
        program.where, *one.ranks, kMostProcesses));
  }

  // `auto` adds the CPU to an emulated card for the times, which programs have none of.
  Values devices_for(const Resolver& resolver, const Program& program, const std::string& section,
                     const std::string& text) {
    auto values = resolver.values(row_of(Axis::kDevice), section, text);
    if (values.size() > 1)
      std::erase_if(values, [](const records::Setting& value) {
        return records::device_from(value.device).is_host_memory;
      });
    for (const auto& value : values)
      if (records::device_from(value.device).is_card)
        at_place(request_.where, section + "/" + text, [&]() -> void {
          throw ConfigError(
              fmt::format("program \"{0}\" on {1}: a suite runs programs on emulated cards and on "
                          "the CPU; give "
                          "it devices = [\"emulated:h100-80gb\"], or run it on this card with "
                          "`peakbench trace`",
                          program.name, value.device));
        });
    return values;
  }

  // A build of Peakbench is nothing to a program, a release of PyTorch is.
  static void set_release(PlannedCase& planned, const Build& build) {
    if (!build.python_path.empty()) {
      auto& path = planned.program->environment["PYTHONPATH"];
      path = build.python_path + (path.empty() ? "" : ":" + path);
    }
    if (build.torch.empty()) return;
    planned.spec.torch = build.torch;
    planned.spec.id = case_id(planned.spec);
    planned.spec.slug = slug(planned.spec.id);
  }

  // nullptr where it is excluded or there already.
  const PlannedCase* add(const With& with, PlannedCase planned,
                         const std::vector<Exclude>& excludes) {
    planned.worker = with.build.worker;
    if (planned.program) set_release(planned, with.build);
    bool is_excluded = false;
    for (std::size_t i = 0; i < excludes.size(); ++i)
      if (excludes[i].matches(planned.spec)) {
        is_excluded = true;
        used_.insert(i);
      }
    if (!excludes.empty()) asked_.push_back(planned.spec);
    if (is_excluded) return nullptr;
    if (!ids_.insert(planned.spec.id).second) return nullptr;
    return &plan_.cases.emplace_back(std::move(planned));
  }

  std::string why_empty() const {
    for (const auto* row : records::asked_axes()) {
      const bool needed = row->asked->required || row->asked->otherwise != nullptr;
      if (needed && request_.lists.at(row->axis).empty())
        return fmt::format("nothing to run: no {} is named", row->label);
    }
    return "nothing to run: the excludes leave no case";
  }

  // A model of ours is one process.
  void check_ranks() const {
    for (const auto& text : request_.lists.at(Axis::kRanks))
      at_place(request_.where, "ranks/" + text, [&]() -> void {
        throw ConfigError(fmt::format(
            "ranks {}: models of Peakbench run in one process; name a model in Python, like "
            "--program hf:llama-3.1-8b --strategy fsdp",
            text));
      });
  }

  // Cases on other devices go without; that nothing at all has them was not meant.
  void check_allocator() const {
    const auto has = [](const PlannedCase& planned) {
      return records::device_from(planned.spec.device).caching_allocator;
    };
    if (std::ranges::any_of(plan_.cases, has)) return;
    for (const auto& text : request_.lists.at(Axis::kAllocator))
      if (!normal_allocator(text).empty())
        at_place(request_.where, "allocator/" + text, [&]() -> void {
          throw ConfigError(fmt::format(
              "allocator {}: no case runs on a CUDA card, real or emulated, whose allocator alone "
              "has such settings; add one, like --device emulated:h100-80gb",
              text));
        });
  }

  // Models without sequences go without; that no model at all has them was not meant.
  void check_sequence_lengths() const {
    const auto has = [](const PlannedCase& planned) {
      return planned.spec.sequence_length.has_value();
    };
    const auto& asked = request_.lists.at(Axis::kSequenceLength);
    if (asked.empty() || std::ranges::any_of(plan_.cases, has)) return;
    at_place(request_.where, "sequence_lengths", [&]() -> void {
      throw ConfigError(fmt::format(
          "sequence length {}: no model that runs has sequences; leave it out, or add a language "
          "model",
          asked.front()));
    });
  }

  // Names in published figures are checked like others, so that none is silently not shown.
  void check_published(std::size_t index) {
    auto& figure = plan_.request.published[index];
    const auto& resolver = first().resolver;
    const auto place = [&](const char* field) {
      return fmt::format("published/{}/{}", index, field);
    };
    at_place(request_.where, place("model"), [&] { figure.model = model_of(figure.model); });
    if (!figure.dtype.empty())
      at_place(request_.where, place("dtype"),
               [&] { resolver.values(records::row_of(Axis::kDtype), "published", figure.dtype); });
    if (!figure.device.empty())
      at_place(request_.where, place("device"), [&] {
        figure.device = resolver.values(records::row_of(Axis::kDevice), "published", figure.device)
                            .front()
                            .device;
      });
    if (figure.strategy.empty()) return;
    at_place(request_.where, place("strategy"), [&] {
      figure.strategy =
          stack_text(make_stack(first().catalogue, parse_stack(figure.strategy), {}).selections);
    });
  }

  // What a suite says in vain was not meant: a name that is misspelled as a pattern, or of a model
  // that another line names no more.
  void check_use() const {
    for (std::size_t i = 0; i < request_.excludes.size(); ++i)
      if (!used_.contains(i)) refuse_exclude(request_.excludes[i]);
    if (!needs_worker(request_)) return;
    check_tables("model_options", planning::Kind::kModel, request_.model_options);
    check_tables("strategy_options", planning::Kind::kStrategy, request_.strategy_options);
    for (std::size_t i = 0; i < plan_.request.published.size(); ++i) check_shown(i);
  }

  [[noreturn]] void refuse_exclude(const Rule& rule) const {
    for (const auto& [name, text] : rule.fields) {
      const auto leaves_out = [&, &name = name, &text = text](const With& with) {
        const Exclude alone({{{name, text}}, rule.where}, with.resolver);
        return std::ranges::any_of(asked_, [&](const auto& one) { return alone.matches(one); });
      };
      if (std::ranges::any_of(with_, leaves_out)) continue;
      const auto& row = records::axis_named(name);
      std::set<std::string> texts;
      for (const auto& one : asked_) texts.insert(row.text(one));
      std::string bare = text;
      std::erase(bare, '*');
      throw ConfigError(
          fmt::format("{}: {} \"{}\": no case has it, so that this exclude leaves out nothing{}",
                      rule.where.at(name), name, text,
                      row.is_integer ? fmt::format("; known: {}", fmt::join(texts, ", "))
                                     : suggestion(bare, {texts.begin(), texts.end()})));
    }
    throw ConfigError(
        fmt::format("{}: this exclude matches no case; remove it", rule.where.begin()->second));
  }

  void check_tables(const char* section, planning::Kind kind,
                    const std::map<std::string, std::map<std::string, std::string>>& tables) const {
    std::set<std::string> used;
    const auto take = [&](const records::Setting& one) {
      if (kind == planning::Kind::kModel) used.insert(one.model.id);
      if (kind == planning::Kind::kStrategy)
        for (const auto& strategy : one.strategies) used.insert(strategy.id);
    };
    for (const auto& planned : plan_.cases) take(planned.spec);
    for (const auto& excluded : asked_) take(excluded);
    for (const auto& [name, options] : tables) {
      const auto& id = first().catalogue.find(kind, name).entry->id;
      if (used.contains(id)) continue;
      at_place(request_.where, fmt::format("{}/{}", section, name), [&, &name = name]() -> void {
        throw ConfigError(fmt::format(
            "{}.{}: no case has that {}, so that these options set "
            "nothing{}",
            section, name, to_string(kind), suggestion(name, {used.begin(), used.end()})));
      });
    }
  }

  void check_shown(std::size_t index) const {
    const auto& figure = plan_.request.published[index];
    const auto shows = [&](const PlannedCase& planned) {
      return records::is_about(figure, planned.spec);
    };
    if (std::ranges::any_of(plan_.cases, shows)) return;
    at_place(request_.where, fmt::format("published/{}/model", index), [&]() -> void {
      throw ConfigError(fmt::format(
          "published figure {} of {}: no case agrees with its model, strategy, device, dtype and "
          "sizes, so that no report would show it",
          index + 1, figure.model));
    });
  }

  // A model without options is every case's of that model; with options it is written as cases are.
  std::string model_of(const std::string& text) const {
    const auto typed = parse_selection(text);
    if (typed.options.empty()) {
      return first().catalogue.find(planning::Kind::kModel, typed.id).entry->id;
    }
    return selection_text(
        first().catalogue.choose(planning::Kind::kModel, typed, {}).use.selection);
  }

  const Request& request_;
  std::list<With> with_;  // one a build
  Plan plan_;
  bool has_stacks_ = false;
  std::vector<std::pair<const With*, PlannedCase>> ablation_;
  std::set<std::string> ids_;
  std::set<std::size_t> used_;           // excludes that left out a case
  std::vector<records::Setting> asked_;  // excluded or not, where there are excludes
};

}  // namespace

bool needs_worker(const Request& request) {
  const auto& lists = request.lists;
  return request.programs.empty() || !request.includes.empty() || !lists.at(Axis::kModel).empty() ||
         !lists.at(Axis::kStrategy).empty();
}

Lists default_lists() {
  Lists lists;
  for (const auto* row : records::asked_axes()) {
    auto& list = lists[row->axis];
    if (row->asked->otherwise != nullptr) list = {row->asked->otherwise};
  }
  return lists;
}

Plan make_plan(const Request& request, std::span<const Build> builds) {
  return Planner(request, builds).make();
}

Plan make_plan(const Request& request, const planning::Found& plugins, const DeviceHook& devices) {
  const Build build{.worker = nullptr, .plugins = plugins, .devices = devices};
  return make_plan(request, {&build, 1});
}

const planning::Worker& worker_of(const PlannedCase& planned) {
  static const planning::Worker own;
  return planned.worker ? *planned.worker : own;
}

const planning::Worker* only_worker(const Plan& plan) {
  const planning::Worker* only = nullptr;
  for (const auto& planned : plan.cases) {
    const auto* one = &worker_of(planned);
    if (only != nullptr && one != only) return nullptr;
    only = one;
  }
  return only;
}

}  // namespace peakbench::planning

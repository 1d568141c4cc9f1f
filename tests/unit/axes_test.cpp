// The table of the axes: every axis through text, JSON and id, and told apart from the others.
#include "records/axes.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "base/errors.h"
#include "planning/plan.h"
#include "planning/selection.h"
#include "support/fake_plugins.h"
#include "support/scratch.h"

namespace peakbench::planning {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using records::Axis;
using records::AxisRow;
using records::Setting;
using testing::fake_plugins;
using testing::message_of;

Setting some_setting() {
  Setting setting;
  setting.model = {"qwen2.5-0.5b", {{"layers", 4}}};
  setting.strategies = {{"lora", {{"rank", 16}}}, {"checkpointing", json::object()}};
  setting.device = "emulated:h100-80gb";
  setting.device_options = {{"cudnn", false}};
  setting.dtype = "bf16";
  setting.batch_size = 8;
  setting.sequence_length = 128;
  setting.allocator = "expandable_segments:True,max_split_size_mb:128";
  setting.seed = 3;
  return setting;
}

// The same but in one axis. An axis without an entry is a test that is missing.
Setting another(Axis axis) {
  static const std::map<Axis, std::function<void(Setting&)>> kChanges{
      {Axis::kKind, [](Setting& setting) { setting.kind = records::CaseKind::kProgram; }},
      {Axis::kModel, [](Setting& setting) { setting.model.options["layers"] = 5; }},
      {Axis::kStrategy, [](Setting& setting) { setting.strategies.pop_back(); }},
      {Axis::kDevice, [](Setting& setting) { setting.device = "cuda:1"; }},
      {Axis::kDeviceOptions, [](Setting& setting) { setting.device_options["cudnn"] = true; }},
      {Axis::kDtype, [](Setting& setting) { setting.dtype = "fp32"; }},
      {Axis::kBatchSize, [](Setting& setting) { setting.batch_size = 9; }},
      {Axis::kSequenceLength, [](Setting& setting) { setting.sequence_length.reset(); }},
      {Axis::kAllocator, [](Setting& setting) { setting.allocator.clear(); }},
      {Axis::kRanks, [](Setting& setting) { setting.ranks = 8; }},
      {Axis::kTorch, [](Setting& setting) { setting.torch = "2.15.0"; }},
      {Axis::kBuild, [](Setting& setting) { setting.build = "change"; }},
      {Axis::kSeed, [](Setting& setting) { setting.seed = 4; }}};
  auto setting = some_setting();
  kChanges.at(axis)(setting);
  return setting;
}

std::vector<Setting> some_settings() {
  std::vector<Setting> settings{some_setting()};
  for (const auto& row : records::axes()) settings.push_back(another(row.axis));
  return settings;
}

TEST(Axes, HaveARowEachAndNamesOfTheirOwn) {
  std::set<std::string> names, fields, lists;
  for (const auto& row : records::axes()) {
    EXPECT_EQ(&records::row_of(row.axis), &row);
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(fields.insert(row.field).second) << row.field;
    if (row.asked) {
      EXPECT_TRUE(lists.insert(row.asked->list).second) << row.name;
      EXPECT_EQ(&records::axis_named(row.name), &row);
      EXPECT_STRNE(row.in_id, "") << row.name << ": two cases of a run would have one id";
    }
  }
}

TEST(Axes, ComeBackFromJson) {
  for (const auto& setting : some_settings()) {
    ordered_json written;
    append_json(written, setting);
    const auto read = json::parse(written.dump());
    Setting again;
    read_setting(Fields(read), again);
    for (const auto& row : records::axes()) EXPECT_TRUE(same_in(row, setting, again)) << row.name;
  }
}

TEST(Axes, ComeBackFromText) {
  for (const auto& setting : some_settings())
    for (const auto* row : records::asked_axes()) {
      const auto text = row->text(setting);
      if (row->parse == nullptr || text.empty()) continue;
      Setting again;
      row->parse(row->name, text, *row, again);
      EXPECT_TRUE(same_in(*row, setting, again)) << row->name << " " << text;
      Setting copy;
      row->copy(setting, copy);
      EXPECT_TRUE(same_in(*row, setting, copy)) << row->name;
    }
}

// What an id's parts say, asked for again, is the same case.
TEST(Axes, ComeBackFromTheId) {
  for (const auto& setting : some_settings()) {
    if (setting.kind != Setting{}.kind) continue;  // not asked for: who runs a case says its kind
    if (setting.ranks) continue;                   // models in Python have them
    Request request;
    request.ablation = false;
    request.seed = setting.seed;
    request.device_options = {{"cudnn", setting.device_options["cudnn"] == true ? "on" : "off"}};
    for (const auto* row : records::asked_axes())
      if (const auto text = row->text(setting); !text.empty()) request.lists[row->axis] = {text};
    Build build{.worker = nullptr, .plugins = fake_plugins(), .devices = {}};
    build.torch = setting.torch;
    build.build = setting.build;
    const auto plan = make_plan(request, {&build, 1});
    ASSERT_EQ(plan.cases.size(), 1U);
    auto expected = setting;
    if (!expected.sequence_length) expected.sequence_length = 512;  // the model's own
    EXPECT_EQ(plan.cases[0].spec.id, case_id(expected));
    for (const auto& row : records::axes())
      EXPECT_TRUE(same_in(row, expected, plan.cases[0].spec)) << row.name;
  }
}

TEST(Axes, GiveTheIdItsParts) {
  EXPECT_EQ(case_id(some_setting()),
            "qwen2.5-0.5b,layers=4/lora,rank=16+checkpointing/emulated:h100-80gb/bf16/b8/s128/"
            "expandable_segments:True,max_split_size_mb:128");
  EXPECT_EQ(case_id(another(Axis::kSequenceLength)),
            "qwen2.5-0.5b,layers=4/lora,rank=16+checkpointing/emulated:h100-80gb/bf16/b8/"
            "expandable_segments:True,max_split_size_mb:128");
  EXPECT_EQ(case_id(another(Axis::kAllocator)),
            "qwen2.5-0.5b,layers=4/lora,rank=16+checkpointing/emulated:h100-80gb/bf16/b8/s128");
  auto program = another(Axis::kKind);
  program.strategies.clear();
  EXPECT_EQ(case_id(program),
            "program/qwen2.5-0.5b,layers=4/emulated:h100-80gb/bf16/b8/s128/"
            "expandable_segments:True,max_split_size_mb:128");
  EXPECT_EQ(in_id(records::row_of(Axis::kSequenceLength), some_setting()), "s128");
  AxisRow quiet = records::row_of(Axis::kBatchSize);
  quiet.unsaid = "8";
  EXPECT_EQ(in_id(quiet, some_setting()), "") << "nobody asked for another";
  EXPECT_EQ(in_id(quiet, another(Axis::kBatchSize)), "b9");
  json old;  // of before the axis
  Setting read;
  quiet.read(Fields(old = json::object()), quiet, read);
  EXPECT_EQ(read.batch_size, 1) << "what the setting begins with";
}

TEST(Axes, AllButLeavesOneOut) {
  for (const auto& row : records::axes()) {
    const auto one = some_setting(), other = another(row.axis);
    EXPECT_FALSE(same_in(row, one, other)) << row.name;
    for (const auto& left_out : records::axes()) {
      EXPECT_EQ(records::all_but(one, left_out.axis) == records::all_but(other, left_out.axis),
                left_out.axis == row.axis)
          << row.name << " differs, " << left_out.name << " left out";
    }
  }
}

TEST(Axes, ATableIsOfThoseThatDifferInItsRows) {
  for (const auto& row : records::axes())
    EXPECT_EQ(records::table_of(some_setting()) == records::table_of(another(row.axis)), row.is_row)
        << row.name;
  auto one = some_setting(), other = another(Axis::kModel);
  one.kind = other.kind = records::CaseKind::kProgram;
  EXPECT_EQ(records::table_of(one), records::table_of(other))
      << "programs are told apart by their names";
}

TEST(Axes, PlainValuesAreWhatTheIdSays) {
  EXPECT_EQ(plain_values(some_setting()),
            json({{"model", "qwen2.5-0.5b,layers=4"},
                  {"strategy", "lora,rank=16+checkpointing"},
                  {"device", "emulated:h100-80gb"},
                  {"dtype", "bf16"},
                  {"batch_size", 8},
                  {"sequence_length", 128},
                  {"allocator", "expandable_segments:True,max_split_size_mb:128"}}));
  EXPECT_FALSE(plain_values(another(Axis::kSequenceLength)).contains("sequence_length"));
}

TEST(Axes, WhatStaysUnsaidInJsonLeavesFilesAsTheyWere) {
  ordered_json written;
  append_json(written, some_setting());
  EXPECT_FALSE(written.contains("kind"));
  EXPECT_TRUE(written.contains("allocator"));
  written = {};
  append_json(written, another(Axis::kKind));
  EXPECT_EQ(written.at("kind"), "program");
}

TEST(Axes, UnknownNamesGetTheNearest) {
  EXPECT_EQ(message_of<ConfigError>([] { records::axis_named("batch"); }),
            "unknown key \"batch\"; did you mean \"batch_size\"?");
  Request request;
  request.lists[Axis::kModel] = {"vit-l-16"};
  request.lists[Axis::kStrategy] = {"baseline"};
  request.excludes = {{{{"dytpe", "bf16"}}, {{"dytpe", "s.toml:4:2"}}}};
  EXPECT_EQ(message_of<ConfigError>([&] { make_plan(request, fake_plugins()); }),
            "s.toml:4:2: unknown key \"dytpe\"; did you mean \"dtype\"?");
}

TEST(Axes, SayWhatAnIntegerMayBe) {
  const auto error = [](const std::string& text) {
    const auto& row = records::row_of(Axis::kBatchSize);
    return message_of<ConfigError>([&] {
      Setting setting;
      row.parse("batch_size", text, row, setting);
    });
  };
  for (const char* text : {"", "x", "1.5", "0", "-1", "-99999999999999999999", "1 "})
    EXPECT_EQ(error(text),
              std::string("batch_size: expected an integer of 1 or more, got ") + text);
  for (const char* text : {"1000000001", "99999999999999999999"})
    EXPECT_EQ(error(text),
              std::string("batch_size: expected an integer of 1000000000 or less, got ") + text);
}

}  // namespace
}  // namespace peakbench::planning

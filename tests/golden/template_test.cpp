// Every template error: what it says and where. Mustache itself would leave a blank.
#include "reports/render/template.h"

#include <gtest/gtest.h>

#include "base/errors.h"
#include "files.h"
#include "reports/run/view.h"

namespace peakbench::reports {
namespace {

using golden::TemporaryFolder;
using golden::write_text;

std::string rendered(const std::string& text, const ReportView& view = {}) {
  const TemporaryFolder folder;
  write_text(folder / "html/page.mustache", text);
  write_text(folder / "html/part.mustache", "part of {{title}}\n");
  write_text(folder / "html/loop.mustache", "{{> loop}}\n");
  write_text(folder / "html/wrong.mustache", "\n\n{{titel}}\n");
  return Templates("", folder.string()).render("html/page.mustache", view, Escape::kHtml);
}

template <typename T>
ReportView with(T ReportView::*member, const std::type_identity_t<T>& value) {
  ReportView view;
  view.*member = value;
  return view;
}

ReportView titled(const std::string& title) { return with(&ReportView::title, title); }

// The error, without the folder before the file's name.
std::string error_of(const std::string& text) {
  try {
    rendered(text);
  } catch (const ConfigError& error) {
    const std::string what = error.what();
    const auto at = what.find("html/");
    return at == std::string::npos ? what : what.substr(at + 5);
  }
  return "no error";
}

struct Wrong {
  const char* name;
  const char* text;
  const char* error;
};

class TemplateErrors : public ::testing::TestWithParam<Wrong> {};

TEST_P(TemplateErrors, SayWhatAndWhere) {
  EXPECT_EQ(error_of(GetParam().text).rfind(GetParam().error, 0), 0U) << error_of(GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(
    All, TemplateErrors,
    ::testing::Values(
        Wrong{"Unknown", "a\n{{titel}}",
              "page.mustache:2: unknown field `titel`; did you mean `title`?; docs/reference "
              "lists the fields"},
        Wrong{"UnknownFar", "{{qqqqqqqqqq}}",
              "page.mustache:1: unknown field `qqqqqqqqqq`; docs/reference"},
        Wrong{"UnknownInList", "{{#groups}}\n\n{{modell}}{{/groups}}",
              "page.mustache:3: unknown field `modell` in `groups`; did you mean `model`?"},
        Wrong{"UnknownMember", "{{#groups}}{{lowest.gig}}{{/groups}}",
              "page.mustache:1: unknown field `lowest.gig`"},
        Wrong{"UnknownSection", "{{#grups}}{{/grups}}",
              "page.mustache:1: unknown field `grups`; did you mean `groups`?"},
        Wrong{"OutOfScope", "{{model}}", "page.mustache:1: unknown field `model`"},
        Wrong{"ListAsText", "{{groups}}",
              "page.mustache:1: `groups` is a list: use {{#groups}}...{{/groups}}"},
        Wrong{"ObjectAsText", "{{#groups}}{{lowest}}{{/groups}}",
              "page.mustache:1: `lowest` is an object: use"},
        Wrong{"FlagAsText", "{{mixed}}",
              "page.mustache:1: `mixed` is a flag: use {{#mixed}}...{{/mixed}}"},
        Wrong{"DotOutside", "{{.}}", "page.mustache:1: {{.}} is the current text"},
        Wrong{"NotClosed", "\n{{#groups}}", "page.mustache:2: section {{#groups}} is not closed"},
        Wrong{"ClosedTwice", "{{/groups}}", "page.mustache:1: {{/groups}} closes nothing"},
        Wrong{"Crossed", "{{#groups}}\n{{#rows}}\n{{/groups}}{{/rows}}",
              "page.mustache:3: {{/groups}} where {{/rows}} is open since line 2"},
        Wrong{"OpenTag", "text\n{{title", "page.mustache:2: a tag that is not closed by }}"},
        Wrong{"Delimiter", "{{=<% %>=}}", "page.mustache:1: set-delimiter tags are not supported"},
        Wrong{"NoPartial", "\n{{> nothing}}",
              "page.mustache:2: {{> nothing}}: no template html/nothing.mustache"},
        Wrong{"Recursive", "{{> loop}}", "loop.mustache:1: {{> loop}} includes itself"},
        Wrong{"InPartial", "{{> wrong}}", "wrong.mustache:3: unknown field `titel`"},
        Wrong{"Calc", "{{#calc}}2 *{{/calc}}",
              "page.mustache:1: {{#calc}}: `2 *`: expected a number"}),
    [](const auto& info) { return std::string(info.param.name); });

std::string times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST(Template, WhatWouldTakeTheWholeStackIsRefused) {
  constexpr int kMany = 100'000;
  EXPECT_EQ(error_of(times(kMany, "{{#title}}") + times(kMany, "{{/title}}")),
            "page.mustache:1: more than 50 sections in sections");
  for (const char* sign : {"-", "("}) {
    const auto error = error_of("{{#calc}}" + times(kMany, sign) + "1{{/calc}}");
    EXPECT_NE(error.find("fewer parentheses"), std::string::npos) << error.substr(0, 500);
    EXPECT_LT(error.size(), 300U);
  }
  EXPECT_EQ(rendered("{{#calc}}1 - -2 * -(3){{/calc}}"), "-5");
  EXPECT_EQ(error_of("{{" + std::string(kMany, 'a') + "}}"),
            "page.mustache:1: no field has a name so long");
  EXPECT_EQ(error_of("{{#groups}}{{#groups}}{{/groups}}{{/groups}}"),
            "page.mustache:1: {{#groups}} is inside itself: a list in the same list");
  EXPECT_EQ(rendered(times(50, "{{#title}}") + times(50, "{{/title}}"), titled("x")), "");
}

TEST(Template, ErrorsHaveAnEnd) {
  const auto errors = error_of(times(100'000, "{{titel}}\n"));
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 49);
}

TEST(Template, TemplatesInTemplatesHaveAnEnd) {
  const TemporaryFolder folder;
  const auto error = [&](int chain) {
    for (int i = 0; i <= chain; ++i) {
      const auto next = "{{> x" + std::to_string(i + 1) + "}}";
      write_text(folder / ("html/x" + std::to_string(i) + ".mustache"),
                 i < chain ? next + next : "");
    }
    try {
      Templates("", folder.string()).render("html/x0.mustache", ReportView(), Escape::kHtml);
    } catch (const ConfigError& wrong) {
      return std::string(wrong.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(error(60).find("x49.mustache:1: {{> x50}}: too many templates"), std::string::npos);
  EXPECT_NE(error(40).find("too many templates"), std::string::npos) << "twice in each";
  EXPECT_EQ(error(10), "no error");
}

TEST(Template, EveryErrorIsReportedAtOnce) {
  const std::string errors = error_of("{{titel}}\n{{mixed}}");
  EXPECT_NE(errors.find("page.mustache:1"), std::string::npos);
  EXPECT_NE(errors.find("page.mustache:2"), std::string::npos);
}

TEST(Template, CalcOverWordsIsAnErrorWhenRendered) {
  EXPECT_THROW(rendered("{{#calc}}{{title}}*2{{/calc}}", titled("words")), ConfigError);
}

TEST(Template, Renders) {
  EXPECT_EQ(rendered("{{title}} {{{title}}} {{&title}}", titled("<&")), "&lt;&amp; <& <&");
  EXPECT_EQ(rendered("{{#pending}}[{{.}}]{{/pending}}{{^pending}}none{{/pending}}",
                     with(&ReportView::pending, {"a", "b"})),
            "[a][b]");
  EXPECT_EQ(rendered("{{#title}}has{{/title}}{{^title}}has none{{/title}}"), "has none");
  EXPECT_EQ(rendered("{{#calc}} {{case_count}} * 2\n + 0.5 {{/calc}}",
                     with(&ReportView::case_count, "4")),
            "8.5");
}

TEST(Template, LoneTagsTakeTheirLines) {
  EXPECT_EQ(
      rendered("a\n  {{#one_case}}\nb\n  {{/one_case}}\n\nc\n", with(&ReportView::one_case, true)),
      "a\nb\n\nc\n");
  EXPECT_EQ(rendered("a\n{{#one_case}}\nb\n{{/one_case}}\nc\n"), "a\nc\n");
  EXPECT_EQ(rendered("a\n{{! says nothing }}\n{{> part}}\nc\n", titled("x")), "a\npart of x\nc\n");
}

TEST(Template, TheUsersFileReplacesOurs) {
  const TemporaryFolder ours, theirs;
  write_text(ours / "html/page.mustache", "{{> head}}|{{> tail}}");
  write_text(ours / "html/head.mustache", "our head");
  write_text(ours / "html/tail.mustache", "our tail");
  write_text(theirs / "html/head.mustache", "their head");
  const Templates templates(theirs.string(), ours.string());
  EXPECT_EQ(templates.render("html/page.mustache", ReportView(), Escape::kHtml),
            "their head|our tail");
}

TEST(Template, AMissingUserFolderIsAnError) {
  EXPECT_THROW(Templates("/no/such/folder", PEAKBENCH_TEMPLATES), ConfigError);
}

struct Leaf {
  std::string text;

  FieldValues fields() const { return {{"text", text, "A text"}}; }
};

struct Tree {
  std::string name, kept;
  bool flag = false;
  Leaf leaf;
  std::optional<Leaf> absent, there;
  std::vector<Leaf> leaves;
  std::vector<std::string> words;

  FieldValues fields() const {
    return {{"name", name, "Its name"},
            {"flag", flag, "Is it?"},
            {"has_words", !words.empty(), "`words` is not empty"},
            {"leaf", leaf, "A leaf"},
            {"absent", absent, "No leaf"},
            {"there", there, "A leaf"},
            {"leaves", leaves, "Leaves"},
            {"words", words, "Words"}};
  }
};

Tree grown() {
  Tree tree;
  tree.name = "oak";
  tree.kept = "not listed";
  tree.leaf.text = "own";
  tree.there = Leaf{"some"};
  tree.leaves = {{"a"}, {"b"}};
  tree.words = {"x", "y"};
  return tree;
}

TEST(Fields, DataHasWhatIsListedAndNothingElse) {
  const nlohmann::json expected{{"name", "oak"},
                                {"flag", false},
                                {"has_words", true},
                                {"leaf", {{"text", "own"}}},
                                {"absent", false},
                                {"there", {{"text", "some"}}},
                                {"leaves", {{{"text", "a"}}, {{"text", "b"}}}},
                                {"words", {"x", "y"}}};
  EXPECT_EQ(data_of(grown()), expected);
}

TEST(Fields, TheListSaysWhatTemplatesMayUse) {
  const Field& root = fields_of<Tree>();
  EXPECT_EQ(table_of(root),
            "| field | kind | what it is |\n|---|---|---|\n"
            "| `name` | text | Its name |\n| `flag` | flag | Is it? |\n"
            "| `has_words` | flag | `words` is not empty |\n| `leaf` | object | A leaf |\n"
            "| `absent` | object | No leaf |\n| `there` | object | A leaf |\n"
            "| `leaves` | list | Leaves |\n| `words` | list | Words |\n");
  for (const char* with_fields : {"leaf", "absent", "there", "leaves"}) {
    ASSERT_TRUE(root.find(with_fields)->find("text")) << with_fields;
    EXPECT_EQ(root.find(with_fields)->fields.size(), 1U);
  }
  EXPECT_TRUE(root.find("words")->fields.empty());
  EXPECT_FALSE(root.find("kept"));
}

// Names of the report are none of another page.
TEST(Fields, OnlyTheViewsOwnAreKnown) {
  const TemporaryFolder folder;
  write_text(folder / "html/tree.mustache", "{{#leaves}}{{name}}{{text}} {{/leaves}}");
  write_text(folder / "html/wrong.mustache", "\n{{title}}");
  const Templates templates("", folder.string());
  EXPECT_EQ(templates.render("html/tree.mustache", grown(), Escape::kHtml), "oaka oakb ");
  try {
    templates.render("html/wrong.mustache", grown(), Escape::kHtml);
    ADD_FAILURE() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("wrong.mustache:2: unknown field `title`"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace peakbench::reports

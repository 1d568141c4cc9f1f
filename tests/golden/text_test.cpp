#include "reports/render/text.h"

#include <gtest/gtest.h>

#include "records/case.h"

namespace peakbench::reports {
namespace {

TEST(Text, PrintableIsValidUtf8WithoutControls) {
  EXPECT_EQ(printable("a\xff"
                      "b"),
            "a\uFFFDb");
  EXPECT_EQ(printable("a\x1b[31m"), "a\uFFFD[31m");
  EXPECT_EQ(printable("line\nline\t"), "line line ");
  EXPECT_EQ(printable("\u202Ereversed"), "\uFFFDreversed");
  EXPECT_EQ(printable("\xc0\xaf"), "\uFFFD\uFFFD") << "an overlong form";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD") << "a surrogate";
  EXPECT_EQ(printable("日本 💥"), "日本 💥");
  EXPECT_EQ(printable("\u009B\u200B\uFFFE"), "\uFFFD\uFFFD\uFFFD");
}

TEST(Text, EscapesForHtml) {
  EXPECT_EQ(escape_html("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  EXPECT_EQ(escape_html("日本\n\t💥\U0001FFFE"), "日本\n\t💥\U0001FFFE");
  EXPECT_EQ(escape_html("\x01\uFFFE\uFFFF\xff"), "\uFFFD\uFFFD\uFFFD\uFFFD") << "XML forbids them";
}

TEST(SoftBreaks, LongWordsMayBreakBehindSeparators) {
  EXPECT_EQ(with_soft_breaks("<td>lora,rank=8 baseline</td>"), "<td>lora,rank=8 baseline</td>");
  EXPECT_EQ(with_soft_breaks("at encoder.layers.encoder_layer_0.mlp twice"),
            "at encoder.<wbr>layers.<wbr>encoder_<wbr>layer_<wbr>0.mlp twice");
  EXPECT_EQ(with_soft_breaks("&quot;lib/model.py&quot;,&quot;main&quot;"),
            "&quot;lib/<wbr>model.<wbr>py&quot;,<wbr>&quot;main&quot;")
      << "an entity is one character";
  EXPECT_EQ(with_soft_breaks("ScaledDotProductAttention"), "Scaled<wbr>DotProduct<wbr>Attention");
  EXPECT_EQ(with_soft_breaks("1,186,922,496,123,456,789.5"), "1,186,922,496,123,456,789.5")
      << "a number stays whole";
  EXPECT_EQ(with_soft_breaks(std::string(50, 'x')),
            std::string(20, 'x') + "<wbr>" + std::string(20, 'x') + "<wbr>" + std::string(10, 'x'));
  EXPECT_EQ(with_soft_breaks("日本日本日本日本日本日本日本"), "日本日本日本日本日本日本日本")
      << "characters count, not bytes";
}

TEST(SoftBreaks, WhatIsNoTextStaysAsItIs) {
  const std::string word = "encoder.layers.encoder_layer_0";
  for (const std::string& html : {"<p title=\"a > " + word + "\">x</p>",
                                  "<script>" + word + "</script>", "<style>a{}" + word + "</style>",
                                  "<svg><svg><text>" + word + "</text></svg>" + word + "</svg>",
                                  "<title>" + word + "</title>", "<p class='" + word,
                                  "<svg>" + word, std::string("a <"), std::string("<")})
    EXPECT_EQ(with_soft_breaks(html), html);
  EXPECT_EQ(with_soft_breaks("<svg></svg>" + word),
            "<svg></svg>encoder.<wbr>layers.<wbr>encoder_<wbr>layer_<wbr>0");
}

TEST(Text, EscapesForMarkdown) {
  EXPECT_EQ(escape_markdown("a|b*c[x](y)"), "a\\|b\\*c\\[x\\](y)");
  EXPECT_EQ(escape_markdown("kernel_grouping _x_"), "kernel_grouping \\_x\\_");
  EXPECT_EQ(escape_markdown("# not a heading #12"), "\\# not a heading \\#12");
  EXPECT_EQ(escape_markdown("@all :tada: 14:05"), "&#64;all &#58;tada: 14:05");
  EXPECT_EQ(escape_markdown("<b>&"), "&lt;b&gt;&amp;");
  EXPECT_EQ(escape_markdown("aten::add on emulated:h100-80gb, a:b"),
            "aten::add on emulated:h100-80gb, a:b");
  EXPECT_EQ(escape_markdown("see https://example.org"), "see https&#58;//example.org");
}

TEST(Text, CommandsAreOneLineOfShell) {
  EXPECT_EQ(shell_quoted({"peakbench", "run", "--model", "vit-l-16,depth=2"}),
            "peakbench run --model vit-l-16,depth=2");
  EXPECT_EQ(shell_quoted({"a b", "", "it's"}), "'a b' '' 'it'\\''s'");
  EXPECT_EQ(shell_quoted({"a\nb'"}), "$'a\\x0ab\\''");
}

TEST(Text, OnlyWebAddressesAreLinked) {
  EXPECT_EQ(web_address("https://example.org/a?b=c#d"), "https://example.org/a?b=c#d");
  EXPECT_EQ(web_address("javascript:alert(1)"), "");
  EXPECT_EQ(web_address("https://example.org/\"onclick"), "");
  EXPECT_EQ(web_address("https://example.org/a)b"), "");
}

TEST(Text, FileStems) {
  EXPECT_EQ(file_stem("Qwen2.5-0.5B,layers=4"), "qwen2-5-0-5b-layers-4");
  EXPECT_EQ(file_stem("../../etc"), "etc");
  EXPECT_EQ(file_stem("💥"), "x");
  EXPECT_LE(file_stem(std::string(300, 'x')).size(), 60U);
}

TEST(Text, FitsATerminal) {
  EXPECT_EQ(display_width("日本"), 4);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(fit("fused-in-backward", 8), "fused-i…");
  EXPECT_EQ(fit("日本日本", 6), "日本…");
  EXPECT_EQ(fit("short", 8), "short");
  EXPECT_EQ(fit_middle("short", 8), "short");
  EXPECT_EQ(fit_middle("checkpointing+fused-in-backward", 15), "checkpo…ackward");
  EXPECT_NE(fit_middle("checkpointing+fused-in-backward+lora", 20),
            fit_middle("checkpointing+fused-in-backward+adam8bit", 20))
      << "what differs stays";
  EXPECT_EQ(fit_middle("日本日本", 6), "日…本");
  EXPECT_EQ(fit_middle("abc", 1), "…");
  EXPECT_EQ(fit_middle("abc", 0), "");
}

TEST(Text, StacksAreAsInACaseId) {
  records::CaseSpec spec;
  spec.strategies = {{"lora", {{"rank", 16}}}, {"checkpointing", {}}};
  EXPECT_EQ(stack_text(spec), "lora,rank=16+checkpointing");
  spec.strategies = {{"lora", {{"targets", "q,k"}}}};
  EXPECT_EQ(stack_text(spec), "lora,targets=\"q,k\"") << "quoted, as it must be typed";
}

}  // namespace
}  // namespace peakbench::reports

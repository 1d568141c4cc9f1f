#include "emulator/host/context_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/numbers.h"

namespace peakbench::emulator {
namespace {

// More than this is a mistyped unit.
constexpr Range<std::int64_t> kBytes{1, std::int64_t{16} << 30};
constexpr std::size_t kMostWords = 255;  // bytes, as of a card's name

std::string text_of(const Fields& fields, const char* key, bool required) {
  auto text =
      required ? fields.get<std::string>(key) : fields.get_or<std::string>(key, std::string());
  if (text.size() > kMostWords || (text.empty() && fields.find(key)))
    throw FieldError(fields.pointer(key),
                     fmt::format("expected a text of 1 to {} bytes", kMostWords));
  return text;
}

ContextMemory read_one(const Fields& fields) {
  fields.only({"bytes", "what", "driver", "cuda", "torch", "source"});
  ContextMemory one;
  one.bytes = static_cast<std::uint64_t>(fields.get<std::int64_t>("bytes", kBytes));
  one.what = text_of(fields, "what", true);
  one.driver = text_of(fields, "driver", false);
  one.cuda = text_of(fields, "cuda", false);
  one.torch = text_of(fields, "torch", false);
  one.source = text_of(fields, "source", true);
  return one;
}

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string in_full(const ContextMemory& one) {
  std::string text =
      fmt::format("{} were measured on such a card ({}", mebibytes(one.bytes), one.what);
  if (!one.torch.empty()) text += "; PyTorch " + one.torch;
  if (!one.cuda.empty()) text += "; CUDA " + one.cuda;
  if (!one.driver.empty()) text += "; driver " + one.driver;
  return text + "; " + one.source + ")";
}

}  // namespace

ContextMemories read_context_memory(const Fields& card) {
  ContextMemories measured;
  card.each("context_memory", [&](const Fields& fields) { measured.push_back(read_one(fields)); });
  return measured;
}

const char* word_of(ContextSource source) {
  if (source == ContextSource::asked) return "option";
  return source == ContextSource::measured ? "measured" : "largest_known";
}

std::string beside_text(const ContextMemoryTaken& context, std::size_t processes, bool included) {
  if (context.bytes == 0) return "with no CUDA context set aside";
  return fmt::format("{} {} of {}{}", included ? "with" : "beside",
                     processes > 1 ? fmt::format("{} CUDA contexts", processes) : "a CUDA context",
                     context.source == ContextSource::largest_known ? "up to " : "",
                     size_text(context.bytes));
}

ContextMemoryTaken largest_of(const ContextMemories& measured) {
  if (measured.empty()) return {};
  const auto largest = std::ranges::max(measured, {}, &ContextMemory::bytes);
  return {largest.bytes, ContextSource::measured};
}

nlohmann::json to_json(const ContextMemories& measured) {
  auto list = nlohmann::json::array();
  for (const auto& one : measured) {
    nlohmann::json json = {{"bytes", one.bytes}, {"what", one.what}, {"source", one.source}};
    for (const auto& [key, version] :
         {std::pair{"driver", one.driver}, {"cuda", one.cuda}, {"torch", one.torch}})
      if (!version.empty()) json[key] = version;
    list.push_back(std::move(json));
  }
  return list;
}

std::string long_text(const ContextMemories& measured) {
  if (measured.empty()) return "how much it takes of this card is unknown";
  std::vector<std::string> texts;
  for (const auto& one : measured) texts.push_back(in_full(one));
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace peakbench::emulator

#include "result/bounded_text.h"

#include <fmt/format.h>

namespace peakbench::result {
namespace {

bool continues_sequence(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

std::string bounded(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return std::string(text);
  constexpr std::size_t kLongestSequence = 4;
  auto end = longest;
  while (end + kLongestSequence > longest && end > 0 && continues_sequence(text[end])) --end;
  return fmt::format("{}... ({} bytes left out)", text.substr(0, end), text.size() - end);
}

void bound_texts(nlohmann::json& json) {
  if (json.is_string()) {
    auto& text = json.get_ref<std::string&>();
    if (text.size() > kLongestText) text = bounded(text);
  } else if (json.is_structured()) {
    for (auto& item : json) bound_texts(item);
  }
}

}  // namespace peakbench::result

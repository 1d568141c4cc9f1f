#include "json/bound_texts.h"

#include "text/bounded_text.h"

namespace peakbench {

void bound_texts(nlohmann::json& json) {
  if (json.is_string()) {
    auto& text = json.get_ref<std::string&>();
    if (text.size() > kLongestText) text = bounded(text);
  } else if (json.is_structured()) {
    for (auto& item : json) bound_texts(item);
  }
}

}  // namespace peakbench

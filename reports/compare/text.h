// Lines for a terminal, wrapped between words.
#pragma once

#include <string>

namespace peakbench::compare {

class Page {
 public:
  explicit Page(int width);

  // Appends `text` from column `indent` on. Further lines are indented by two more columns. Cuts a
  // word that is wider than the line.
  void line(int indent, const std::string& text);
  void blank() { text_ += "\n"; }
  int width() const { return width_; }
  std::string take() { return std::move(text_); }

 private:
  void emit(int indent, const std::string& text);

  int width_;
  std::string text_;
};

}  // namespace peakbench::compare

#pragma once
// Messages of a room's flow to a person while it works. The command line fills in the functions (cli/say.cpp), and
// tests fill in their own. So no flow knows the console, the command's flags or the JSON document.
#include "base/diagnosis.hpp"
#include "tree/tree.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace sharefs::plan {

struct Say {
  std::function<void(std::string_view text)> message = [](std::string_view) {};
  std::function<void(std::string_view text, std::string_view hint)> warning = [](std::string_view, std::string_view) {};
  std::function<void(const Diagnoses& found)> report = [](const Diagnoses&) {};
  /// Shows a line of progress ("copying /x") until the returned value is destroyed.
  std::function<tree::OnProgress(std::string what)> progress = [](const std::string&) { return tree::OnProgress{}; };
};

} // namespace sharefs::plan

#pragma once
// Messages of a room's flow to a person while it works. The command line fills it in (cli/say.hpp), a test with what
// it wants to see. No flow knows the console, the command's flags or the JSON document.
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
  /// A line of progress ("copying /x") that stays for as long as what is returned.
  std::function<tree::OnProgress(std::string what)> progress = [](const std::string&) { return tree::OnProgress{}; };
};

} // namespace sharefs::plan

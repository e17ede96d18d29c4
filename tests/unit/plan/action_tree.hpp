#pragma once
// A real tree on which actions are applied, on a machine that allows all of them.
#include "plan/apply.hpp"
#include "willing_machine.hpp"

#include <string>
#include <sys/stat.h>

namespace sharefs::test {

struct Tree {
  TemporaryRoot root;
  ScriptedSystem system{root.path(), willing_machine()};

  [[nodiscard]] std::string at(const std::string& path) const { return root.path() + path; }
  /// "done", "unchanged", or the error's code.
  std::string apply(const plan::Action& action) {
    const auto outcome = plan::apply_action(action, system);
    last = outcome ? Error{} : outcome.error();
    return outcome ? to_string(*outcome) : to_string(outcome.error().code);
  }
  [[nodiscard]] unsigned mode(const std::string& path) const {
    struct stat status{};
    return ::lstat(at(path).c_str(), &status) == 0 ? status.st_mode & 07777U : 0U;
  }
  Error last;
};

} // namespace sharefs::test

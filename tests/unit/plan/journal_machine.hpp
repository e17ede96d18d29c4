#pragma once
// A journal on a machine of its own, and whole runs of plans in it.
#include "plan/journal.hpp"
#include "support/catch.hpp"
#include "willing_machine.hpp"

namespace sharefs::test {

using namespace plan;

struct JournalMachine {
  TemporaryRoot root;
  ScriptedSystem system{root.path(), willing_machine()};
  Journal journal{system.files(), "/var/lib/sharefs"};

  [[nodiscard]] std::string at(const std::string& id, const std::string& file) const {
    return root.path() + "/var/lib/sharefs/journal/" + id + "/" + file;
  }
  std::string begin(const Plan& plan, const std::string& command = "sharefs test") {
    const auto id =
        journal.begin(plan, command, system.machine.identity, system.machine.now, {0, plan.steps[0].action});
    REQUIRE(id);
    system.machine.now += std::chrono::seconds(1);
    return *id;
  }
  /// A whole run of a plan with one step.
  std::string record(const Plan& plan, Outcome outcome = Outcome::done) {
    const auto id = begin(plan);
    const StepResult result{0, outcome, {}, {}};
    REQUIRE(journal.end_step(id, result));
    Report report;
    report.results = {result};
    REQUIRE(journal.end(id, report));
    return id;
  }
  JournalState state(const std::string& id) { return journal.load(id)->state; }
};

inline Plan one_step() {
  Plan plan;
  plan.add("g", "why", make_directory("/d"));
  return plan;
}

} // namespace sharefs::test

#include "mounts/watch/daemon.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts::watch;

namespace {

/// "systemctl enable --now sharefs-watch.service", and what takes it back.
std::string planned_for_daemon(const Daemon& daemon, bool wanted) {
  std::string text;
  for (const auto& step : plan_daemon(daemon, wanted).steps)
    text += plan::describe(step.action) + " / " + shell_join(std::get<plan::RunTool>(step.action).undo);
  return text;
}

} // namespace

TEST_CASE("the daemon is started or enabled by what is missing, and each way has its opposite", "[daemon]") {
  const std::string unit = "/usr/lib/systemd/system/sharefs-watch.service";
  CHECK(planned_for_daemon({true, unit, false, false}, true) ==
        "run `systemctl enable --now sharefs-watch.service` / systemctl disable --now sharefs-watch.service");
  CHECK(planned_for_daemon({true, unit, false, true}, true) ==
        "run `systemctl enable sharefs-watch.service` / systemctl disable sharefs-watch.service");
  CHECK(planned_for_daemon({true, unit, true, false}, true) ==
        "run `systemctl start sharefs-watch.service` / systemctl stop sharefs-watch.service");
  CHECK(planned_for_daemon({true, unit, true, true}, true).empty());
  CHECK(planned_for_daemon({true, unit, true, false}, false) ==
        "run `systemctl disable --now sharefs-watch.service` / systemctl enable --now sharefs-watch.service");
  CHECK(planned_for_daemon({true, unit, false, false}, false).empty());
}

TEST_CASE("without systemd, or without the unit, nothing can be started", "[daemon]") {
  CHECK(planned_for_daemon({false, "/x", false, false}, true).empty());
  CHECK(planned_for_daemon({true, "", false, false}, true).empty());
}

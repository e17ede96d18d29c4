// By which settings the daemon recovers when sharefs.yaml has become another one since it was read.
#include "mounts/watch/watcher.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;

namespace {

watch::Settings settings_of(const std::string& text, const std::string& name) {
  return {text, {test::share(name, "/data/share")}, "1s", "stale", "", [] { return std::set<std::string>(); }, nullptr};
}

/// Runs the daemon once on a machine with a stale share; `later` is what it reads before it recovers.
struct OneRound {
  test::ScriptedSystem system;
  std::vector<std::string> errors;
  std::string kept;

  explicit OneRound(const Result<watch::Settings>& later) {
    system.machine.mounts = test::table_of(
        test::nfs_line(50, 1, "/data/share", "storage1:/mnt/share", test::k_v42_super, "rw,nosuid,nodev,relatime"));
    system.machine.nfs["storage1"] = test::good_server();
    system.machine.entries["/data/share"] = test::answered(ESTALE);
    test::leave_rest_missing(system);
    bool is_first = true;
    const auto done = watch::watch(
        system,
        {.read_settings = [&] { return std::exchange(is_first, false) ? settings_of("first", "share") : later; },
         .open_journal = [] { return fail(ErrorCode::not_found, "there is no journal"); },
         .log =
             [&](const watch::LogLine& line) {
               if (line.event == "config" && line.severity == Severity::error)
                 errors.push_back(line.message);
             },
         .manager = {std::nullopt, std::nullopt, std::nullopt},
         .flags = {"--config", "/root/w.yaml"},
         .keep_text = [&](const std::string& text) -> Result<Argv> {
           kept = text;
           return Argv{"--config", "/state/watch.yaml"};
         }},
        true);
    REQUIRE(done);
  }
};

} // namespace

TEST_CASE("watch recovers by the file as long as it is what was read") {
  const OneRound round(settings_of("first", "share"));
  CHECK(round.system.calls() ==
        std::vector<std::string>{"run /usr/bin/sharefs recover share --yes --json --wait 0 --config /root/w.yaml"});
  CHECK(round.kept.empty());
}

TEST_CASE("watch recovers by the settings in force when the file has become wrong") {
  const OneRound round(fail(ErrorCode::config, "w.yaml:5:18: `recover` must be ..."));
  CHECK(
      round.system.calls() ==
      std::vector<std::string>{"run /usr/bin/sharefs recover share --yes --json --wait 0 --config /state/watch.yaml"});
  CHECK(round.kept == "first");
  CHECK(round.errors ==
        std::vector<std::string>{"the configuration stays as it was: w.yaml:5:18: `recover` must be ..."});
}

TEST_CASE("watch recovers nothing by settings that are no longer in the file") {
  CHECK(OneRound(settings_of("second", "renamed")).system.calls().empty());
}

#include "mounts/watch/rounds.hpp"
#include "support/catch.hpp"

#include <nlohmann/json.hpp>

using namespace sharefs;
using namespace sharefs::mounts::watch;

namespace {

const std::chrono::system_clock::time_point k_when{std::chrono::seconds(1'700'000'000)};
const LogLine k_log_line{"left", Severity::warning, "sh\xff", "/data/a\nb", "stale", "left \"alone\"\n"};

} // namespace

TEST_CASE("format_log: one line, whatever names there are", "[log]") {
  CHECK(format_log(k_log_line, LogForm::plain, k_when) == "2023-11-14T22:13:20Z warning: sh\\377: left \"alone\"\\n\n");
  CHECK(format_log({.event = "stopped", .message = "stopped"}, LogForm::plain, k_when) ==
        "2023-11-14T22:13:20Z stopped\n");
  const auto json = format_log(k_log_line, LogForm::json, k_when);
  CHECK(json.find('\n') == json.size() - 1);
  CHECK(nlohmann::json::parse(json) == nlohmann::json{{"time", "2023-11-14T22:13:20Z"},
                                                      {"level", "warning"},
                                                      {"event", "left"},
                                                      {"mount", "sh\xef\xbf\xbd"},
                                                      {"target", "/data/a\nb"},
                                                      {"state", "stale"},
                                                      {"message", "left \"alone\"\n"}});
  CHECK(format_log(k_log_line, LogForm::journal, k_when) == "<4>" + json);
  const auto order = format_log({.event = "left", .message = "\u009b2J\u202e"}, LogForm::json, k_when);
  CHECK(order.find("\"\\u009b2J\\u202e\"") != std::string::npos);
}

#include "cachefix/preflight.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"

#include <fmt/format.h>

using namespace sharefs;
using namespace sharefs::cachefix;
using State = NodeReport::State;

namespace {

constexpr const char* k_directory = "/var/cache/sharefs/alice";

std::string answer(const std::string& host, int exit_code, const std::string& out, const std::string& err) {
  return fmt::format(R"({{"argv": ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "--", "{}",
                         "sh -s -- {} 1048576 10000"], "exit_code": {}, "out": "{}", "err": "{}"}})",
                     host, k_directory, exit_code, out, err);
}

std::vector<NodeReport> reports(const std::vector<std::string>& hosts, const std::string& answers) {
  auto system = test::ScriptedSystem::from_json(
      R"({"identity": {"hostname": "n1.cluster", "addresses": ["10.0.0.1"]}, "run": [)" + answers + "]}", "/");
  if (!system)
    FAIL(system.error().message);
  return check_nodes(**system, hosts, k_directory, {{}, 1ULL << 30U}, std::chrono::seconds(5));
}

} // namespace

TEST_CASE("requirement 9: each other node is asked, and one that cannot hold the caches is named") {
  const auto found = reports({"n1", "n2", "10.0.0.1", "n3", "localhost", "n4"},
                             answer("n2", 0, "good\\n", "") + "," +
                                 answer("n3", 0, "bad /var/cache/sharefs/alice has 12 MiB free\\n", "") + "," +
                                 answer("n4", 255, "", "ssh: connect to host n4 port 22: No route to host\\n"));
  REQUIRE(found.size() == 3);
  CHECK(found[0] == NodeReport{"n2", State::good, ""});
  CHECK(found[1] == NodeReport{"n3", State::bad, "/var/cache/sharefs/alice has 12 MiB free"});
  CHECK(found[2] == NodeReport{"n4", State::unknown, "ssh: connect to host n4 port 22: No route to host"});
}

TEST_CASE("a host that would be an option of ssh is never given to it") {
  CHECK(reports({"-oProxyCommand=touch /tmp/x"}, "").empty());
}

#include "cachefix/store/preflight.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"

#include <map>
#include <mutex>

using namespace sharefs;
using namespace sharefs::cachefix;
using State = NodeReport::State;

namespace {

constexpr const char* k_directory = "/var/cache/sharefs/alice";

sys::Completed answer(int exit_code, const std::string& out, const std::string& err) {
  sys::Completed completed;
  completed.exit_code = exit_code;
  completed.out = out;
  completed.err = err;
  return completed;
}

struct Nodes {
  test::ScriptedSystem system{"/"};
  std::map<std::string, sys::Completed> answers;
  std::map<std::string, std::string> scripts;
  std::mutex mutex; // many are asked at once

  Nodes() {
    system.machine.identity.hostname = "n1.cluster";
    system.machine.identity.addresses = {"10.0.0.1"};
    system.machine.on_run = [this](const sys::Command& command) -> Result<sys::Completed> {
      const std::lock_guard guard(mutex);
      const std::string host = command.argv.at(command.argv.size() - 2);
      scripts[host] = command.input;
      return answers.at(host);
    };
  }
  std::vector<NodeReport> reports(const std::vector<std::string>& hosts,
                                  const std::vector<std::string>& directories = {"/var/cache/sharefs"},
                                  Holds holds = Holds::data) {
    return check_nodes(system, hosts, k_directory, holds, {directories, 1ULL << 30U}, std::chrono::seconds(5));
  }
};

} // namespace

TEST_CASE("requirement 9: each other node is asked, and one that cannot hold the caches is named") {
  Nodes nodes;
  nodes.answers = {{"n2", answer(0, "good\n", "")},
                   {"n3", answer(0, "bad /var/cache/sharefs/alice has 12 MiB free\n", "")},
                   {"n4", answer(255, "", "ssh: connect to host n4 port 22: No route to host\n")},
                   {"n5", answer(0, "good /var/cache/sharefs/alice is memory (tmpfs)\n", "")},
                   {"n6", answer(0, "Welcome\n", "")},
                   {"n7", answer(124, "", "")}};
  const auto found = nodes.reports({"n1", "n2", "10.0.0.1", "n3", "localhost", "n4", "n5", "n6", "n7"});
  REQUIRE(found.size() == 6);
  CHECK(found[0] == NodeReport{"n2", State::good, ""});
  CHECK(found[1] == NodeReport{"n3", State::bad, "/var/cache/sharefs/alice has 12 MiB free"});
  CHECK(found[2] == NodeReport{"n4", State::unknown, "ssh: connect to host n4 port 22: No route to host"});
  CHECK(found[3] == NodeReport{"n5", State::good, "/var/cache/sharefs/alice is memory (tmpfs)"});
  CHECK(found[4] == NodeReport{"n6", State::unknown, "its shell did not answer the question"});
  CHECK(found[5] == NodeReport{"n7", State::unknown, "no answer within 5 s"});
  CHECK(nodes.scripts["n2"].starts_with("set -- /var/cache/sharefs/alice 1048576 10000 disk data\n"));
}

TEST_CASE("memory is no surprise on a node where its path was written down") {
  Nodes nodes;
  nodes.answers = {{"n2", answer(0, "good\n", "")}};
  (void)nodes.reports({"n2"}, {"/var/cache"});
  CHECK(nodes.scripts["n2"].starts_with("set -- /var/cache/sharefs/alice 1048576 10000 memory data\n"));
  (void)nodes.reports({"n2"}, {"/var/cache"}, Holds::code);
  CHECK(nodes.scripts["n2"].starts_with("set -- /var/cache/sharefs/alice 1048576 10000 memory code\n"));
}

TEST_CASE("a host that would be an option of ssh is never given to it") {
  Nodes nodes;
  const auto found = nodes.reports({"-oProxyCommand=touch /tmp/x"});
  REQUIRE(found.size() == 1);
  CHECK(found[0].state == State::unknown);
  CHECK(nodes.scripts.empty());
}

#include "fleet/push.hpp"
#include "fleet/run.hpp"
#include "fleet/script.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "sys/fs/sha256.hpp"
#include "sys/real_system.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>

using namespace sharefs;
using namespace sharefs::fleet;
namespace fs = std::filesystem;

namespace {

PushContent given_cargo() {
  PushContent content;
  content.here = {"x86_64", "/usr/bin/sharefs", "p1", "g1", "c1", "", false};
  content.version = "sharefs 1.0";
  return content;
}

std::vector<std::string> steps_of(const Outcome& outcome) {
  std::vector<std::string> steps;
  if (outcome.state == State::pending)
    for (const auto& step : outcome.document["plan"]["steps"])
      steps.push_back(step["description"]);
  return steps;
}

sys::Completed run_script_here(const std::string& script, const std::string& home, const std::string& input = {}) {
  sys::RealSystem system;
  sys::Command command;
  command.argv = {"sh", "-c", script, "sh", "gpu1"};
  command.environment["HOME"] = home;
  command.input = input;
  return *system.run(command);
}

} // namespace

TEST_CASE("a node gets what it has not", "[fleet]") {
  const auto content = given_cargo();
  const auto plan = [&](const Installed& there) { return plan_push({"gpu1"}, content, there); };
  CHECK(plan({"x86_64", "/opt/bin/sharefs", "p1", "g1", "c1", "", false}).state == State::ok);
  CHECK(steps_of(plan({"x86_64", "", "", "", "", "", false})) ==
        std::vector<std::string>{"write /usr/local/bin/sharefs", "write the guard", "write /etc/sharefs/sharefs.yaml"});
  CHECK(steps_of(plan({"x86_64", "/opt/bin/sharefs", "p0", "g1", "c1", "", false})) ==
        std::vector<std::string>{"write /opt/bin/sharefs"});
  CHECK(steps_of(plan({"aarch64", "/usr/bin/sharefs", "p1", "g1", "c0", "", false})) ==
        std::vector<std::string>{"write /etc/sharefs/sharefs.yaml"});
  // A package's program is right as it is, if it is the same one.
  CHECK(plan({"x86_64", "/usr/bin/sharefs", "p1", "g1", "c1", "1.0", false}).state == State::ok);
}

TEST_CASE("what must not be replaced is refused with a way out", "[fleet]") {
  const auto content = given_cargo();
  const auto refusal = [](const PushContent& brought, const Installed& there) {
    const auto outcome = plan_push({"gpu1"}, brought, there);
    CHECK(outcome.state == State::failed);
    CHECK(!outcome.hint.empty());
    return outcome.why;
  };
  CHECK(refusal(content, {"aarch64", "", "", "", "", "", false}) ==
        "this program is for x86_64, and the node is aarch64");
  CHECK(refusal(content, {"x86_64", "/usr/bin/sharefs", "p0", "g1", "c1", "0.9", false}) ==
        "/usr/bin/sharefs there belongs to a package (0.9)");
  CHECK(refusal(content, {"x86_64", "/usr/bin/sharefs", "p1", "g1", "c0", "", true}) ==
        "/etc/sharefs/sharefs.yaml is a symbolic link there");
  auto package = content;
  package.package = "1.0";
  CHECK(refusal(package, {"x86_64", "/usr/local/bin/sharefs", "p0", "g1", "c1", "", false}) ==
        "/usr/local/bin/sharefs there belongs to no package, and comes before it in PATH");
  CHECK(steps_of(plan_push({"gpu1"}, package, {"aarch64", "/usr/bin/sharefs", "p0", "", "c1", "0.9", false})) ==
        std::vector<std::string>{"install the package sharefs 1.0"});
}

TEST_CASE("a machine says what it has of sharefs", "[fleet]") {
  test::TemporaryDirectory directory;
  const auto at = [&](const std::string& name) { return (fs::path(directory.path()) / name).string(); };
  fs::create_directories(at("share/sub"));
  std::ofstream(at("sharefs")) << "program";
  std::ofstream(at("sharefs.yaml")) << "version: 1\n";
  std::ofstream(at("share/a.py")) << "a";
  std::ofstream(at("share/sub/b.py")) << "b";
  const auto script = installed_script("", at("sharefs"), at("share"), at("sharefs.yaml"));
  const auto first = run_script_here(script, directory.path());
  auto found = parse_installed("Welcome to gpu1\n" + first.out);
  REQUIRE(found);
  CHECK(found->program_sum == sys::sha256("program"));
  CHECK(found->config_sum == sys::sha256("version: 1\n"));
  CHECK(!found->machine.empty());
  CHECK(!found->config_is_link);
  // Bytecode that Python wrote beside the guard makes no difference, a changed file does.
  std::ofstream(at("share/sub/b.pyc")) << "bytecode";
  CHECK(parse_installed(run_script_here(script, directory.path()).out)->guard_sum == found->guard_sum);
  std::ofstream(at("share/sub/b.py")) << "other";
  CHECK(parse_installed(run_script_here(script, directory.path()).out)->guard_sum != found->guard_sum);
  CHECK(!parse_installed(first.out.substr(0, first.out.find("@sharefs end")))); // cut off
}

TEST_CASE("scripts are of the plainest shell, without single quotes of their own", "[fleet]") {
  auto content = given_cargo();
  for (const auto* package : {"", "1.0"}) {
    content.package = package;
    const auto script = install_script(content);
    sys::RealSystem system;
    sys::Command command;
    command.argv = {"sh", "-n", "-c", script};
    CHECK(system.run(command)->err.empty());
  }
  for (const std::string body : {k_mirror_script, k_push_script, k_trust_script})
    CHECK(body.find('\'') == std::string::npos);
}

TEST_CASE("the end of a script is known from what it said, or from ssh", "[fleet]") {
  const Node node{"gpu1"};
  CHECK(script_outcome(node, "motd\n@sharefs changed program\n@sharefs end ok\n", {0, ""}).state == State::changed);
  CHECK(script_outcome(node, "@sharefs changed \n@sharefs end ok\n", {0, ""}).state == State::ok);
  const auto failed = script_outcome(node, "@sharefs failed no room\n", {1, ""});
  CHECK(failed.state == State::failed);
  CHECK(failed.why == "no room");
  CHECK(script_outcome(node, "", {255, "ssh: connect to host gpu1 port 22: Connection refused\n"}).state ==
        State::refused);
  CHECK(script_outcome(node, "@sharefs changed program\n", {255, "Connection to gpu1 closed by remote host\n"}).state ==
        State::unreachable); // its end did not come
}

TEST_CASE("an engine is of no use without ssh", "[fleet]") {
  test::TemporaryDirectory directory;
  sys::RealSystem system;
  directory.write("xargs", "");
  const auto chosen = choose_engine(system, "", directory.path());
  REQUIRE_FALSE(chosen);
  CHECK(chosen.error().message == "ssh is not installed here");
  directory.write("ssh", "");
  CHECK(choose_engine(system, "", directory.path()));
}

TEST_CASE("a script on this machine reads its own input, and writes files of any size", "[fleet]") {
  test::TemporaryDirectory directory;
  sys::RealSystem system;
  Request request;
  const auto name = system.identity().hostname;
  request.nodes = {{name}};
  request.settings.path = path_for_engines(system, "");
  request.settings.engine = *choose_engine(system, "xargs", request.settings.path);
  const auto large = directory.path() + "/large";
  request.asking.script =
      script_of({{"file", large}}, "read -r word; head -c 40000000 /dev/zero >\"$file\" || no \"too large\"\n"
                                   "end_well \"$1 $word\"\n");
  request.inputs[name] = "own\n";
  request.read = script_outcome;
  const auto run = run_on_nodes(system, directory.path() + "/run", request, {.answered = [](const Outcome&) {}});
  REQUIRE(run);
  REQUIRE(run->outcomes.size() == 1);
  CHECK(run->outcomes.front().state == State::changed);
  CHECK(run->outcomes.front().why == name + " own");
  CHECK(fs::file_size(large) == 40'000'000);
}

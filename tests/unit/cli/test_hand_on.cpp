#include "cli/commands/stage/stage.hpp"

#include "support/catch.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"

#include <fmt/format.h>
#include <sstream>
#include <string>
#include <vector>

namespace sharefs::cli {
namespace {

/// What is said to each of so many nodes, n0 and so on.
std::vector<std::string> told(std::size_t nodes) {
  fleet::Request job;
  for (std::size_t number = 0; number < nodes; ++number)
    job.nodes.push_back({.name = fmt::format("n{}", number)});
  assign_upstreams(job);
  std::vector<std::string> words;
  for (const auto& node : job.nodes)
    words.push_back(node.words);
  return words;
}

TEST_CASE("up to sixteen nodes are a chain", "[cli][stage]") {
  CHECK(told(1) == std::vector<std::string>{""});
  CHECK(told(3) == std::vector<std::string>{"", "--upstreams n0", "--upstreams n1,n0"});
  CHECK(told(16)[15].starts_with("--upstreams n14,n13,n12,"));
}

TEST_CASE("no agent goes along with what is handed on", "[cli][stage]") {
  test::TemporaryDirectory root;
  test::ScriptedSystem system{root.path()};
  std::istringstream in;
  std::ostringstream out;
  Host host{nullptr, in, out, out, {}, {}, "/"};
  ui::Console console(in, out, out, {});
  Context context(host, system, console, {}, {"sharefs", "stage"});
  Arguments arguments;
  arguments.values["upstreams"] = {"n0"};
  const auto upstreams = upstreams_of(context, arguments);
  REQUIRE(upstreams);
  const auto upstream = (*upstreams)("/x.sqfs", 1).at(0);
  const auto words = shell_join(upstream.argv);
  CHECK_THAT(words, Catch::StartsWith("ssh -T -x -a -o BatchMode=yes ") && Catch::Contains("-o RemoteCommand=none") &&
                        Catch::Contains("-o ServerAliveInterval=5") && Catch::Contains(" -- n0 "));
}

TEST_CASE("more nodes are a tree of two", "[cli][stage]") {
  const auto words = told(1000);
  CHECK(words[0].empty());
  CHECK(words[2] == "--upstreams n0");
  CHECK(words[16] == "--upstreams n7,n3,n1,n0");
  CHECK(told(17)[16] == words[16]);
  CHECK(words[999] == "--upstreams n499,n249,n124,n61,n30,n14,n6,n2,n0");
}

} // namespace
} // namespace sharefs::cli

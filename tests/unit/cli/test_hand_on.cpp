#include "cli/commands/stage/stage.hpp"

#include "support/catch.hpp"
#include <fmt/format.h>
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

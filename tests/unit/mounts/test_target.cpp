#include "mounts/target.hpp"
#include "support/catch.hpp"

#include <cerrno>

using namespace sharefs;
using namespace sharefs::mounts;

namespace {

sys::PathFact fact(const std::string& path, sys::PathKind kind) {
  sys::PathFact one;
  one.path = path;
  one.kind = kind;
  return one;
}

} // namespace

TEST_CASE("every directory on the way is asked, names only in the last") {
  const auto queries = target_queries("/data/share");
  REQUIRE(queries.size() == 2);
  CHECK(queries[0].path == "/data");
  CHECK_FALSE(queries[0].list);
  CHECK(queries[1].path == "/data/share");
  CHECK(queries[1].list);
  CHECK(target_queries("/").empty());
}

TEST_CASE("what is missing is to be made, the topmost first") {
  const auto facts = judge_target({fact("/data", sys::PathKind::directory), fact("/data/a", sys::PathKind::missing),
                                   fact("/data/a/b", sys::PathKind::missing)});
  CHECK(facts.missing == std::vector<std::string>{"/data/a", "/data/a/b"});
  CHECK(facts.problem.empty());
}

TEST_CASE("names in the target are counted") {
  auto target = fact("/data", sys::PathKind::directory);
  target.entries = {"a", "b"};
  CHECK(judge_target({target}).entries == 2);
}

TEST_CASE("links, files and what cannot be looked at") {
  auto link = fact("/data", sys::PathKind::symlink);
  link.link_target = "/mnt/data";
  const auto facts = judge_target({link, fact("/data/share", sys::PathKind::directory)});
  CHECK(facts.link == "/data");
  CHECK(facts.link_leads_to == "/mnt/data");
  CHECK(judge_target({fact("/data", sys::PathKind::file)}).problem == "/data is no directory");
  auto closed = fact("/data", sys::PathKind::unknown);
  closed.error_number = EACCES;
  CHECK(judge_target({closed}).problem == "/data: Permission denied");
}

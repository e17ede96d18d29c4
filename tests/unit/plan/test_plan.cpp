#include "plan/json_values.hpp"
#include "plan/plan.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::plan;

namespace {

std::vector<std::string> groups_after_merge(const std::vector<std::pair<std::string, std::string>>& steps) {
  Plan plan;
  for (const auto& [group, target] : steps)
    plan.add(group, "", Mount{"s:/x", target, "nfs", ""});
  std::vector<std::string> groups;
  for (const auto& step : merge_nested_groups(plan).steps)
    groups.push_back(step.group);
  return groups;
}

} // namespace

TEST_CASE("groups with nested targets become one, named after the first") {
  using Steps = std::vector<std::pair<std::string, std::string>>;
  using Groups = std::vector<std::string>;
  CHECK(groups_after_merge({}).empty());
  CHECK(groups_after_merge(Steps{{"a", "/a"}, {"b", "/b"}}) == Groups{"a", "b"});
  CHECK(groups_after_merge(Steps{{"a", "/d"}, {"b", "/d/e/f"}}) == Groups{"a", "a"});
  CHECK(groups_after_merge(Steps{{"a", "/d/e/f"}, {"b", "/d/"}}) == Groups{"a", "a"});
  CHECK(groups_after_merge(Steps{{"a", "/data"}, {"b", "/data2"}}) == Groups{"a", "b"});
  CHECK(groups_after_merge(Steps{{"a", "/d"}, {"b", "/d"}}) == Groups{"a", "a"});
  CHECK(groups_after_merge(Steps{{"", "/d"}, {"b", "/d/e"}, {"c", "/d/e/f"}}) == Groups{"", "b", "b"});
  // b joins c first, then a (which is first of all) joins c.
  CHECK(groups_after_merge(Steps{{"a", "/x/1"}, {"b", "/y/1"}, {"c", "/y"}, {"c", "/x"}}) ==
        Groups{"a", "a", "a", "a"});
  CHECK(groups_after_merge(Steps{{"b", "/y"}, {"c", "/z"}, {"a", "/x"}, {"c", "/x/1"}}) == Groups{"b", "c", "c", "c"});
  CHECK(groups_after_merge(Steps{{"a", "/"}, {"b", "/y"}, {"c", "/z"}}) == Groups{"a", "a", "a"});
}

TEST_CASE("a plan survives JSON") {
  Plan plan;
  for (const auto& action : test::samples())
    plan.add("group \xff", "because \xc3\xa4", action);
  plan.notes = {"one", "two"};
  plan.undoes = "20260131-120000-1";
  const auto json = parse_json(dump_line(to_json(plan)));
  REQUIRE(json);
  const auto back = plan_from_json(*json);
  REQUIRE(back);
  CHECK(*back == plan);
  CHECK_FALSE(plan_from_json(Json::object()));
  CHECK_FALSE(plan_from_json(Json{{"steps", {{{"group", ""}, {"why", ""}, {"action", 1}}}}}));
}

TEST_CASE("the JSON of a plan says what can be undone") {
  Plan plan;
  plan.add("g", "w", RunTool{{"sync"}, {}});
  plan.add("g", "w", make_directory("/a"));
  const auto json = to_json(plan);
  CHECK(json["steps"][0]["undoable"] == false);
  CHECK(json["steps"][0]["description"] == "run `sync`");
  CHECK(json["steps"][1]["undoable"] == true);
  CHECK(json["notes"].empty());
  CHECK_FALSE(json.contains("undoes"));
}

TEST_CASE("a report counts outcomes") {
  Report report;
  CHECK(report.ok());
  report.results = {{0, Outcome::done, {}, {}}, {1, Outcome::unchanged, {}, {}}};
  CHECK(report.ok());
  report.results.push_back({2, Outcome::failed, Error{ErrorCode::busy, "m", "h", ""}, std::chrono::milliseconds(7)});
  report.results.push_back({3, Outcome::skipped, {}, {}});
  CHECK_FALSE(report.ok());
  CHECK(report.count(Outcome::done) == 1);
  report.journal_id = "id";
  CHECK(dump_line(json_of(report)["results"][2]) ==
        R"({"step":2,"outcome":"failed","error":{"code":"busy","message":"m","hint":"h","context":""},"took_ms":7})");
  CHECK(json_of(report)["interrupted"] == false);
}

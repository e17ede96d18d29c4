#include "plan/action.hpp"
#include "plan/json_values.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

#include <set>

using namespace sharefs;
using namespace sharefs::plan;

TEST_CASE("every action survives JSON text, byte for byte") {
  std::set<std::size_t> kinds;
  for (const auto& action : test::samples()) {
    kinds.insert(action.index());
    const auto text = dump_line(to_json(action));
    CAPTURE(text);
    CHECK(text.find('\n') == std::string::npos);
    const auto json = parse_json(text);
    REQUIRE(json);
    const auto back = action_from_json(*json);
    REQUIRE(back);
    CHECK(*back == action);
  }
  CHECK(kinds.size() == std::variant_size_v<Action>); // a new action needs a sample
}

TEST_CASE("JSON is readable where it can be") {
  CHECK(dump_line(to_json(Action(File{"/etc/x", std::nullopt, "a\n", 0640}))) ==
        R"({"kind":"file","path":"/etc/x","before":null,"after":"a\n","mode":"0640","actor":null})");
  CHECK(dump_line(to_json(Action(make_link("/\xff", "t")))) ==
        R"({"kind":"link","path":{"base64":"L/8="},"before":null,"after":"t","actor":null,"checked":false})");
  CHECK(
      dump_line(to_json(Action(remove_directory("/d", 01777)))) ==
      R"({"kind":"directory","path":"/d","mode_before":"1777","mode_after":null,"actor":null,"guarded":false,"access":null})");
}

TEST_CASE("a journal of before what is changed was known by more than its name is readable") {
  const auto read = [](const char* text) { return action_from_json(*parse_json(text)); };
  const auto access = read(R"({"kind": "set_access", "path": "/d", "before": null, "after": {"uid": 0, "gid": 5,
    "mode": "0755", "default_acl": ""}, "group": null, "device": 7, "inode": 11, "actor": null})");
  CHECK(access == Action(SetAccess{"/d", std::nullopt, {0, 5, 0755, ""}, {}, {7, 11}}));
  const auto files = read(R"({"kind": "change_files", "path": "/e", "device": 7, "inode": 11, "changes": [{"path": "a",
    "before": "", "after": "", "edits": [], "mode_before": 384, "mode_after": 420, "removed": false}]})");
  CHECK(files == Action(ChangeFiles{"/e", 7, 11, {{"a", "", "", {}, 0600U, 0644U}}}));
  CHECK(read(R"({"kind": "run_tool", "argv": ["sync"]})") == Action(RunTool{{"sync"}, {}}));
}

TEST_CASE("bytes of every length survive base64") {
  std::string bytes;
  for (int i = 0; i < 20; ++i) {
    bytes += static_cast<char>(0xff - i);
    CHECK(bytes_from_json(bytes_to_json(bytes)) == bytes);
  }
  CHECK(bytes_from_json(Json{{"base64", "a"}}) == std::nullopt);
  CHECK(bytes_from_json(Json{{"base64", "a*=="}}) == std::nullopt);
  CHECK(bytes_from_json(Json(7)) == std::nullopt);
}

TEST_CASE("a malformed action is refused with the name of the field") {
  struct Row {
    const char* json;
    const char* message;
  };
  const auto row = GENERATE(
      Row{R"([])", "an action has no `kind`"}, Row{R"({"kind":7})", "an action has no `kind`"},
      Row{R"({"kind":"format_disk"})", "unknown kind of action `format_disk`"},
      Row{R"({"kind":"link","path":"/a"})", "a `link` action says neither what is there before nor what after"},
      Row{R"({"kind":"directory","path":"/a"})",
          "a `directory` action says neither what is there before nor what after"},
      Row{R"({"kind":"remount","before":"","after":""})", "a `remount` action lacks a path"},
      Row{R"({"kind":"file","path":"/a","after":"","mode":"99"})", "a `file` action has a malformed field `mode`"},
      Row{R"({"kind":"directory","path":"/a","actor":{"user":{"name":"x","home":"/","uid":-1},"beneath":"/"}})",
          "a `directory` action has a malformed field `actor`"},
      Row{R"({"kind":"run_tool","argv":["a",1]})", "a `run_tool` action has a malformed field `argv`"});
  const auto json = parse_json(row.json);
  REQUIRE(json);
  const auto action = action_from_json(*json);
  REQUIRE_FALSE(action);
  CHECK(action.error().message == row.message);
}

#include "plan/json_values.hpp"
#include "support/catch.hpp"
#include "ui/plan_view.hpp"

using namespace sharefs;
using namespace sharefs::plan;
using sharefs::ui::plan_text;
using sharefs::ui::summary_text;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++found;
  return found;
}

} // namespace

TEST_CASE("plan_text: marks, aligned reasons, no heading for one group", "[plan_view]") {
  Plan plan;
  plan.notes = {"`old` is left alone"};
  plan.add("share", "the mount point", make_directory("/data/share"));
  plan.add("share", "profile safe", plan::Mount{"storage1:/mnt/share", "/data/share", "nfs", "hard", {}});
  const auto text = plan_text(plan, false);
  const auto column = describe(plan.steps[1].action).size() + 6;
  CHECK(text.starts_with("note: `old` is left alone\n  + make directory /data/share  "));
  CHECK(text.find("the mount point") - text.find("  + make") == column);
  CHECK(text.find("profile safe") - text.find("  + mount storage1") == column);
  CHECK(text.find("share\n  +") == std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("plan_text: headings when there are several groups, the nameless one first", "[plan_view]") {
  Plan plan;
  plan.add("a", "", remove_directory("/a"));
  plan.add("b", "", make_link("/b", "/x"));
  plan.add("", "", make_directory("/c"));
  plan.add("a", "", remove_directory("/a2"));
  const auto text = plan_text(plan, false);
  CHECK(text == "  + " + describe(plan.steps[2].action) + "\na\n  - " + describe(plan.steps[0].action) + "\n  - " +
                    describe(plan.steps[3].action) + "\nb\n  + " + describe(plan.steps[1].action) + "\n");
}

TEST_CASE("plan_text: what cannot be undone is marked", "[plan_view]") {
  Plan plan;
  plan.add("", "makes room", RunTool{{"rm-it"}, {}, false, {0}, {}});
  plan.add("", "", RunTool{{"rm-it"}, {}, false, {0}, {}});
  plan.add("", "reload", RunTool{{"exportfs", "-r"}, {}, true, {0}, {}});
  const auto text = plan_text(plan, false);
  CHECK(count(text, "(cannot be undone)") == 2);
  CHECK(text.find("makes room (cannot be undone)\n") != std::string::npos);
  CHECK(text.find("reload\n") != std::string::npos);
  CHECK(count(text, "  > ") == 3);
}

TEST_CASE("plan_text: diffs are indented, coloured by line, and bounded", "[plan_view]") {
  Plan plan;
  plan.add("", "", File{"/etc/x", "a\nb\n", "a\nc\x1b[2J\n", 0644});
  const auto text = plan_text(plan, false);
  CHECK(text.starts_with("  ~ "));
  CHECK(text.find("\n      -b\n") != std::string::npos);
  CHECK(text.find("\n      +c\\033[2J\n") != std::string::npos);
  const auto colour = plan_text(plan, true);
  CHECK(colour.find("\n      \x1b[31m-b\x1b[0m\n") != std::string::npos);
  CHECK(colour.find("\x1b[32m+c") != std::string::npos);

  std::string many;
  for (int i = 0; i < 5000; ++i)
    many += std::to_string(i) + "\n";
  Plan large;
  large.add("", "", File{"/etc/x", std::nullopt, many, 0644});
  const auto cut = plan_text(large, false);
  CHECK(count(cut, "\n") < 210);
  CHECK(cut.find("more lines\n") != std::string::npos);
  CHECK(cut.starts_with("  + "));
}

TEST_CASE("plan_text: no escape of a file name or group reaches the terminal", "[plan_view]") {
  Plan plan;
  plan.notes = {"n\x1b[2J"};
  plan.add("g\x1b[2J", "w\n\x1b[2J", make_directory("/d\x1b[2J"));
  plan.add("h", "", make_directory("/e"));
  plan.add("h", "", make_directory("/f"));
  CHECK(plan_text(plan, true).find("\x1b[2J") == std::string::npos);
}

TEST_CASE("plan_text: a line per group needs no headings", "[plan_view]") {
  Plan plan;
  plan.add("a", "", remove_directory("/a"));
  plan.add("b", "", remove_directory("/b"));
  CHECK(plan_text(plan, false) == "  - remove directory /a\n  - remove directory /b\n");
}

TEST_CASE("plan_text: what sharefs writes for itself is shown with --verbose only", "[plan_view]") {
  Plan plan;
  plan.add_bookkeeping("llm", "who made it", File{"/s/1.json", std::nullopt, "{}\n"}, true);
  plan.add_bookkeeping("other", "out of sight", Rename{"/s/1", "/s/old-1", std::nullopt});
  plan.add("llm", "users see it", make_link("/s/llm", "1"));
  CHECK(plan_text(plan, false, false) == "  + link /s/llm -> 1  users see it\n");
  const auto all = plan_text(plan, false, true);
  CHECK(all.find("who made it\n") != std::string::npos);
  CHECK(all.find("      +{}\n") != std::string::npos);
  CHECK(all.find("rename /s/1 to /s/old-1") != std::string::npos);

  Report report;
  report.results = {{0, Outcome::done, {}, {}}, {1, Outcome::failed, {}, {}}, {2, Outcome::done, {}, {}}};
  CHECK(summary_text(plan, report, "undo", false).starts_with("1 done, 1 failed"));
  CHECK(summary_text(plan, report, "undo", true).starts_with("2 done, 1 failed"));
  CHECK(*plan_from_json(to_json(plan)) == plan);

  plan.steps.pop_back(); // a note is all that was asked for
  CHECK(plan_text(plan, false, false).find("write /s/1.json") != std::string::npos);
  CHECK(plan_text(plan, false, false).find("+{}") == std::string::npos);
}

TEST_CASE("summary_text: counts, how to go on, how to undo", "[plan_view]") {
  const auto report = [](std::vector<Outcome> outcomes, std::string id, bool interrupted = false) {
    Report result;
    for (std::size_t i = 0; i < outcomes.size(); ++i)
      result.results.push_back({i, outcomes[i], std::nullopt, {}});
    result.journal_id = std::move(id);
    result.interrupted = interrupted;
    return result;
  };
  constexpr auto k_undo = "sharefs --root /x undo ID";
  using enum Outcome;
  Plan plan;
  for (const char* path : {"/a", "/b", "/c", "/d"})
    plan.add("", "", make_directory(path));
  Plan undo = plan;
  undo.undoes = "ID0";
  Plan staying; // an undo would answer that nothing can be taken back
  staying.add("", "", make_directory("/d"), true);
  staying.add("", "", RunTool{.argv = {"rpcbind", "-w"}, .undo = {}});
  CHECK(summary_text(staying, report({done, done}, "ID"), k_undo) == "2 done");
  Plan deletes;
  deletes.add("", "", make_directory("/d"));
  deletes.add("", "", RemoveTree{.path = "/e"});
  CHECK(summary_text(deletes, report({done, done}, "ID"), k_undo) == "2 done");
  CHECK(summary_text(deletes, report({done, skipped}, "ID", true), k_undo).ends_with("ID`"));
  Plan daemon; // what it did besides can be taken back
  daemon.add("", "", make_directory("/d"));
  daemon.add("", "", RunTool{.argv = {"rpcbind", "-w"}, .undo = {}});
  CHECK(summary_text(daemon, report({done, done}, "ID"), k_undo).ends_with("ID`"));
  CHECK(summary_text(plan, report({}, ""), k_undo).empty());
  CHECK(summary_text(plan, report({done, done, unchanged}, "ID"), k_undo) ==
        "2 done, 1 unchanged; undo with `sharefs --root /x undo ID`");
  CHECK(summary_text(plan, report({unchanged}, "ID"), k_undo) == "1 unchanged"); // nothing to undo
  CHECK(summary_text(undo, report({done}, "ID"), k_undo) == "1 done");
  CHECK(summary_text(plan, report({done, failed, skipped, skipped}, "ID"), k_undo) ==
        "1 done, 1 failed, 2 skipped; run the command again to complete it, or undo with `sharefs --root /x undo ID`");
  CHECK(summary_text(plan, report({failed}, "ID"), k_undo) == "1 failed; run the command again to complete it");
  CHECK(
      summary_text(plan, report({done, skipped}, "ID", true), k_undo) ==
      "interrupted: 1 done, 1 skipped; run the command again to complete it, or undo with `sharefs --root /x undo ID`");
}

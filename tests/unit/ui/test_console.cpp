#include "support/catch.hpp"
#include "ui/console.hpp"

#include <sstream>

using namespace sharefs;
using namespace sharefs::ui;

namespace {

struct Screen {
  explicit Screen(ConsoleOptions options = {}, const std::string& typed = "")
      : in(typed), console(in, out, err, options) {}
  std::istringstream in;
  std::ostringstream out, err;
  Console console;
};

ConsoleOptions in_colour() {
  ConsoleOptions options;
  options.colour = options.err_terminal = options.out_terminal = true;
  return options;
}

plan::Plan small_plan() {
  plan::Plan plan;
  plan.add("share", "the mount point", plan::make_directory("/data/share"));
  return plan;
}

} // namespace

TEST_CASE("messages: label, colon, text; hint on its own line", "[console]") {
  Screen screen;
  screen.console.message("3 mounts");
  screen.console.warning("slow", "look at `sharefs status`");
  screen.console.warning("only this");
  screen.console.error({ErrorCode::config, "f:1:2: wrong", "fix it", "  1 | abc\n    |  ^"});
  CHECK(screen.err.str() == "3 mounts\n"
                            "warning: slow\nhint: look at `sharefs status`\n"
                            "warning: only this\n"
                            "error: f:1:2: wrong\n  1 | abc\n    |  ^\nhint: fix it\n");
  CHECK(screen.out.str().empty());
}

TEST_CASE("messages: colour on the word only", "[console]") {
  Screen screen(in_colour());
  screen.console.error({ErrorCode::failed, "no", "yes", ""});
  screen.console.warning("maybe");
  CHECK(screen.err.str() == "\x1b[31merror\x1b[0m: no\n\x1b[32mhint\x1b[0m: yes\n\x1b[33mwarning\x1b[0m: maybe\n");
}

TEST_CASE("messages: stderr has no colour where only stdout is a terminal", "[console]") {
  auto options = in_colour();
  options.err_terminal = false;
  Screen screen(options);
  screen.console.warning("plain");
  CHECK(screen.err.str() == "warning: plain\n");
  options.force_colour = true;
  Screen forced(options);
  forced.console.warning("coloured");
  CHECK(forced.err.str() == "\x1b[33mwarning\x1b[0m: coloured\n");
}

TEST_CASE("messages: nothing from outside reaches the terminal as it is", "[console]") {
  Screen screen(in_colour());
  screen.console.message("a\x1b[2Jb\nerror: forged");
  screen.console.error({ErrorCode::failed, "/data/\x1b]0;x\x07", "rm \xe2\x80\xae", "line\n\x1b[1m"});
  screen.console.diagnoses({{Severity::warning, "SF\n", "s\x9b", "m\r", "h\x08", "f\n"}});
  const auto text = screen.err.str();
  CHECK(text.find("\x1b[2J") == std::string::npos);
  CHECK(text.find("\x1b]0") == std::string::npos);
  CHECK(text.find("\x1b[1m") == std::string::npos);
  CHECK(text.find("\nerror: forged") == std::string::npos);
  for (const char* control : {"\r", "\x07", "\x08", "\x9b", "\xe2\x80\xae"})
    CHECK(text.find(control) == std::string::npos);
}

TEST_CASE("diagnoses: severity, subject, code, hint and fix", "[console]") {
  const Diagnoses diagnoses{{Severity::error, "SF101", "/etc/exports:3", "bad", "write it so", "sharefs export"},
                            {Severity::info, "SF102", "", "by the way", "", ""}};
  Screen screen;
  screen.console.diagnoses(diagnoses);
  CHECK(screen.err.str() == "error: /etc/exports:3: bad [SF101]\nhint: write it so\nhint: run `sharefs export`\n"
                            "note: by the way [SF102]\n");
  ConsoleOptions quiet;
  quiet.quiet = true;
  Screen silent(quiet);
  silent.console.diagnoses(diagnoses);
  CHECK(silent.err.str().find("note:") == std::string::npos);
  CHECK(silent.err.str().find("error:") != std::string::npos);
}

TEST_CASE("quiet: only warnings and errors", "[console]") {
  ConsoleOptions options;
  options.quiet = true;
  Screen screen(options);
  screen.console.message("not this");
  screen.console.show(small_plan());
  screen.console.warning("this");
  CHECK(screen.err.str() == "warning: this\n");
}

TEST_CASE("quiet: nobody is asked about a plan that was not shown", "[console]") {
  ConsoleOptions options;
  options.quiet = options.in_terminal = true;
  Screen screen(options, "y\n");
  screen.console.show(small_plan());
  CHECK(screen.err.str().empty());
  CHECK(screen.console.confirm("Proceed?"));
  CHECK(screen.err.str() == "  + make directory /data/share  the mount point\nProceed? [y/N] ");
}

TEST_CASE("quiet: lines that say what is asked for come with the question", "[console]") {
  for (const bool quiet : {false, true}) {
    ConsoleOptions options;
    options.quiet = quiet;
    options.in_terminal = true;
    Screen screen(options, "y\ny\n");
    screen.console.proposal("gpu1: 1 step");
    screen.console.proposal("  write /x\x1b[2J");
    CHECK(screen.err.str().empty() == quiet);
    CHECK(screen.console.confirm("Proceed?"));
    CHECK(screen.err.str() == "gpu1: 1 step\n  write /x\\033[2J\nProceed? [y/N] ");
    CHECK(screen.console.confirm("More?")); // each line once
    CHECK(screen.err.str().ends_with("Proceed? [y/N] More? [y/N] "));
  }
}

TEST_CASE("a plan that was asked for is data", "[console]") {
  ConsoleOptions options;
  options.quiet = true;
  options.colour = options.err_terminal = true;
  Screen screen(options);
  screen.console.show(small_plan(), true);
  CHECK(screen.err.str().empty());
  CHECK(screen.out.str() == "  + make directory /data/share  the mount point\n");
}

TEST_CASE("json: plans and reports are in the document, not on stderr", "[console]") {
  ConsoleOptions options;
  options.json = true;
  Screen screen(options);
  screen.console.show(small_plan());
  screen.console.show(small_plan(), plan::Report{{{0, plan::Outcome::done, std::nullopt, {}}}, "id", false},
                      "sharefs undo ID");
  CHECK(screen.err.str().empty());
}

TEST_CASE("confirm: only yes is yes", "[console]") {
  struct Row {
    std::string typed;
    bool expected;
  };
  const std::vector<Row> rows{{"y\n", true},   {"Y\n", true}, {"yes\n", true}, {" YES \n", true},
                              {"y", true},     {"\n", false}, {"n\n", false},  {"yep\n", false},
                              {"ye\n", false}, {"", false},   {"no\n", false}, {"\ny\n", false}};
  for (const auto& [typed, expected] : rows) {
    INFO('"' << typed << '"');
    ConsoleOptions options;
    options.in_terminal = true;
    Screen screen(options, typed);
    CHECK(screen.console.confirm("Proceed?") == expected);
    CHECK(screen.err.str() == (typed.empty() ? "Proceed? [y/N] \n" : "Proceed? [y/N] "));
  }
}

TEST_CASE("confirm: without a terminal there is nobody to ask", "[console]") {
  Screen screen({}, "y\n");
  CHECK_FALSE(screen.console.confirm("Proceed?"));
  CHECK(screen.err.str().empty());
}

TEST_CASE("report: failed steps with their error, then the summary", "[console]") {
  auto plan = small_plan();
  plan.add("share", "", plan::make_directory("/data/b"));
  plan::Report report;
  report.journal_id = "20260131-120000-1";
  report.results = {{0, plan::Outcome::done, std::nullopt, {}},
                    {1, plan::Outcome::failed, Error{ErrorCode::failed, "no space", "make room", ""}, {}}};
  Screen screen;
  screen.console.show(plan, report, "sharefs undo 20260131-120000-1");
  CHECK(screen.err.str() == "error: make directory /data/b: no space\nhint: make room\n"
                            "1 done, 1 failed; run the command again to complete it, or undo with `sharefs undo "
                            "20260131-120000-1`\n");
}

TEST_CASE("report: an error of the run names no step, and one of a step that was not begun its step", "[console]") {
  plan::Report report;
  report.error = Error{ErrorCode::failed, "there is no room", "make room", ""};
  report.results = {{0, plan::Outcome::skipped, std::nullopt, {}}};
  Screen screen;
  screen.console.show(small_plan(), report, "sharefs undo");
  CHECK(screen.err.str() ==
        "error: there is no room\nhint: make room\n1 skipped; run the command again to complete it\n");
  report.error = {};
  report.results[0].error = Error{ErrorCode::timeout, "not begun: the steps before it took longer than 2 min", "", ""};
  Screen late;
  late.console.show(small_plan(), report, "sharefs undo");
  CHECK(late.err.str().starts_with("error: " + plan::describe(small_plan().steps[0].action) + ": not begun: "));
}

TEST_CASE("report: an interruption is said even when quiet", "[console]") {
  ConsoleOptions options;
  options.quiet = true;
  Screen screen(options);
  plan::Report report;
  report.interrupted = true;
  report.results = {{0, plan::Outcome::skipped, std::nullopt, {}}};
  screen.console.show(small_plan(), report, "sharefs undo");
  CHECK(screen.err.str() == "warning: interrupted: 1 skipped; run the command again to complete it\n");
}

TEST_CASE("progress: none without a terminal, with json or quiet", "[console]") {
  ConsoleOptions options;
  options.err_terminal = true;
  options.json = true;
  Screen screen(options);
  {
    Progress progress(screen.console, "working", 3);
    progress.advance("x");
  }
  CHECK(screen.err.str().empty());
}

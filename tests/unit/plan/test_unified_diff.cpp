#include "plan/action.hpp"
#include "plan/unified_diff.hpp"
#include "support/catch.hpp"

#include <random>
#include <vector>

using namespace sharefs::plan;

namespace {

std::string numbered(int from, int to) {
  std::string text;
  for (int i = from; i <= to; ++i)
    text += "line " + std::to_string(i) + "\n";
  return text;
}

/// What patch(1) does with a unified diff, for texts whose lines all end in a newline.
std::string patched(const std::string& before, const std::string& diff) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < before.size();) {
    const auto end = before.find('\n', at) + 1;
    lines.push_back(before.substr(at, end - at));
    at = end;
  }
  std::string out;
  std::size_t line = 0;
  std::size_t at = diff.find("@@");
  while (at < diff.size()) {
    const auto end = diff.find('\n', at) + 1;
    const auto text = diff.substr(at, end - at);
    at = end;
    if (text.starts_with("@@ -")) {
      std::size_t digits = 0;
      auto start = std::stoul(text.substr(4), &digits);
      const bool is_empty_range = text.substr(4 + digits).starts_with(",0");
      start = is_empty_range ? start : start - 1;
      REQUIRE(start >= line);
      while (line < start)
        out += lines.at(line++);
    } else if (text.front() == '+') {
      out += text.substr(1);
    } else {
      REQUIRE(lines.at(line) == text.substr(1));
      if (text.front() == ' ')
        out += lines[line];
      ++line;
    }
  }
  while (line < lines.size())
    out += lines[line++];
  return out;
}

} // namespace

TEST_CASE("unified diff as diff -u writes it") {
  struct Row {
    std::optional<std::string> before, after;
    std::string expected; // without the two lines of the heading
  };
  const std::vector<Row> rows{
      {"a\nb\nc\n", "a\nB\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"},
      {std::nullopt, "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
      {"a\n", std::nullopt, "@@ -1 +0,0 @@\n-a\n"},
      {"", "a\n", "@@ -0,0 +1 @@\n+a\n"},
      {"a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
      {"a\nb", "a\nc", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"},
      {"x\na", "y\na", "@@ -1,2 +1,2 @@\n-x\n+y\n a\n\\ No newline at end of file\n"},
      {numbered(1, 9), "new\n" + numbered(1, 9), "@@ -1,3 +1,4 @@\n+new\n line 1\n line 2\n line 3\n"},
      {numbered(1, 9), numbered(1, 8), "@@ -6,4 +6,3 @@\n line 6\n line 7\n line 8\n-line 9\n"},
      // Four common lines between two changes keep them in one hunk, five make two (seven with diff -u).
      {"a\n" + numbered(1, 4) + "b\n", numbered(1, 4),
       "@@ -1,6 +1,4 @@\n-a\n line 1\n line 2\n line 3\n line 4\n-b\n"},
      {"a\n" + numbered(1, 5) + "b\n", numbered(1, 5),
       "@@ -1,4 +1,3 @@\n-a\n line 1\n line 2\n line 3\n@@ -5,3 +4,2 @@\n line 4\n line 5\n-b\n"},
      {"a\n" + numbered(1, 7) + "b\n", numbered(1, 7),
       "@@ -1,4 +1,3 @@\n-a\n line 1\n line 2\n line 3\n@@ -6,4 +5,3 @@\n line 5\n line 6\n line 7\n-b\n"},
      {"a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n", // the example of Myers' paper: five edits
       "@@ -1,7 +1,6 @@\n-a\n-b\n c\n+b\n a\n b\n-b\n a\n+c\n"},
  };
  for (const auto& row : rows) {
    const auto name = [](const auto& content) { return content ? "/etc/x" : "/dev/null"; };
    const auto heading = std::string("--- ") + name(row.before) + "\n+++ " + name(row.after) + "\n";
    CHECK(unified_diff("/etc/x", row.before, row.after) == heading + row.expected);
  }
}

TEST_CASE("equal texts have no diff, bytes are not shown") {
  CHECK(unified_diff("/x", "a\n", "a\n").empty());
  CHECK(unified_diff("/x", std::nullopt, std::nullopt).empty());
  CHECK(unified_diff("/x", "a\xff", std::nullopt) == "--- /x\n+++ /dev/null\nbinary content: 2 B before, none after\n");
  CHECK(unified_diff("/x y", std::nullopt, "") == "--- /dev/null\n+++ '/x y'\n");
}

TEST_CASE("any two texts: the diff applied to the first gives the second") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const auto text = [&random] {
      std::string out;
      for (auto lines = random() % 30; lines > 0; --lines)
        out += std::string(1, static_cast<char>('a' + random() % 4)) + "\n";
      return out;
    };
    const auto before = text();
    const auto after = text();
    const auto diff = unified_diff("/x", before, after);
    CAPTURE(before, after, diff);
    REQUIRE(patched(before, diff) == after);
  }
}

TEST_CASE("large texts are bounded") {
  const auto common = numbered(1, 5000);
  const auto few = unified_diff("/x", common + "old\n", common + "new\n");
  CHECK(few == "--- /x\n+++ /x\n@@ -4998,4 +4998,4 @@\n line 4998\n line 4999\n line 5000\n-old\n+new\n");
  const auto before = numbered(1, 6000);
  const auto after = numbered(10'001, 16'000);
  CHECK(patched(before, unified_diff("/x", before, after)) == after);
}

TEST_CASE("only actions on files have a diff") {
  CHECK(diff(File{"/x", "a\n", "b\n", 0644}) == "--- /x\n+++ /x\n@@ -1 +1 @@\n-a\n+b\n");
  CHECK(diff(remove_file("/x", "a\n")) == "--- /x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n");
  CHECK(diff(make_directory("/x")).empty());
}

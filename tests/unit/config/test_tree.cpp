#include "config/tree.hpp"
#include "support/catch.hpp"

using namespace sharefs::config;

namespace {

/// "LINE:COLUMN: message" of the problem, or "" if there is none.
std::string problem_of(const std::string& text) {
  const Source source(text, "f");
  const auto tree = read_tree(source);
  if (tree)
    return "";
  const auto& [place, message, hint] = tree.error();
  CHECK_FALSE(hint.empty());
  return std::to_string(place.line) + ":" + std::to_string(place.column) + ": " + message;
}

} // namespace

TEST_CASE("read_tree: kinds, texts, quotes and places", "[tree]") {
  const std::string text = "\xef\xbb\xbf# a comment\r\nä: 0755\r\nb: [\"x\", yes, ~]\r\nc: {d: 'it''s'}\r\n";
  const Source source(text, "f");
  const auto tree = read_tree(source);
  REQUIRE(tree);
  REQUIRE(tree->entries.size() == 3);
  const auto& a = tree->entries[0];
  CHECK(a.name == "ä");
  CHECK(a.place == Place{2, 1});
  CHECK(a.value.text == "0755"); // by its source, not 493
  CHECK(a.value.plain);
  CHECK(a.value.place == Place{2, 4}); // characters, not bytes
  const auto& b = tree->entries[1].value;
  REQUIRE(b.items.size() == 3);
  CHECK_FALSE(b.items[0].plain);
  CHECK(b.items[1].text == "yes");
  CHECK(b.items[2].kind == Node::Kind::null);
  REQUIRE(tree->entries[2].value.entries.size() == 1);
  CHECK(tree->entries[2].value.entries[0].name == "d");
  CHECK(tree->entries[2].value.entries[0].value.text == "it's");
}

TEST_CASE("read_tree: duplicate and merge keys stay for the checks", "[tree]") {
  const Source source("a: 1\na: 2\n<<: 3\n", "f");
  const auto tree = read_tree(source);
  REQUIRE(tree);
  CHECK(tree->entries.size() == 3);
}

TEST_CASE("read_tree: aliases are what they stand for", "[tree]") {
  const Source source("a: &list [x, &one y]\nb: *list\nc: *one\n", "f");
  const auto tree = read_tree(source);
  REQUIRE(tree);
  REQUIRE(tree->entries.size() == 3);
  CHECK(tree->entries[1].value.items.size() == 2);
  CHECK(tree->entries[2].value.text == "y");
}

TEST_CASE("read_tree: what is no YAML, and what sharefs does not take", "[tree]") {
  struct Row {
    std::string yaml, problem;
  };
  const std::vector<Row> rows{
      {"a:\n\tb: 1\n", "2:1: a tab in the indentation"},
      {"a:\n  b: 1\n\tc: 2\n", "3:1: a tab in the indentation"},
      {"a:\n  \tb: 1\n", "2:3: a tab in the indentation"},
      {"a: b: c\n", "1:5: a `:` where no value can begin"},
      {"a: 1\n  b: 2\n", "2:4: a `:` where no value can begin"},
      {"a: [1, 2\nb: 3\n", "2:2: a `[` is not closed before this"},
      {"a: @x\n", "1:4: no value can begin with this character"},
      {"a: `x`\n", "1:4: no value can begin with this character"},
      {"a: *\n", "1:5: a `*` without a name"},
      {"a: *x\n", "1:4: the alias `*` names no anchor `&` above it"},
      {"a: &x [*x]\n", "1:8: the alias stands inside of its own anchor"},
      {"a: \"x\nb: 1\n", "1:4: the quote `\"` is never closed"},
      {"a: &q 'x\nb: ''1\n", "1:7: the quote `'` is never closed"},
      {"a: [\"x]\n", "1:5: the quote `\"` is never closed"},
      {"a: 1\n---\nb: 2\n", "2:1: a second document begins here"},
      {"a: 1\n...\nb\n", "3:1: a second document begins here"},
      {"? [a]\n: b\n", "1:3: a key must be text"},
      {"{a: 1}: 2\n", "1:1: a key must be text"},
      {": 1\n", "1:1: a key must be text"},
      {"a: !x 1\n", "1:4: the tag `!x` has no meaning here"},
      {"a: !!python/object:os.system [x]\n",
       "1:4: the tag `tag:yaml.org,2002:python/object:os.system` has no meaning here"},
  };
  for (const auto& [yaml, problem] : rows) {
    INFO(yaml);
    CHECK(problem_of(yaml) == problem);
  }
  for (const std::string right : {"", "a: !!str 1\n", "a: |\n  \"x\n", "%YAML 1.2\n---\na: 1\n...\n", "a: 'it''s'\n",
                                  "a: [\n\tx,\n\ty]\n", "a: \"\\\"\"\n", "---\n"}) {
    INFO(right);
    CHECK(problem_of(right).empty());
  }
}

TEST_CASE("read_tree: bombs end soon", "[tree]") {
  const auto repeat = [](const std::string& text, std::size_t bytes) {
    std::string out;
    while (out.size() < bytes)
      out += text;
    return out;
  };
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) {
    const auto last = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k)
      laughs += (k == 0 ? "" : ", ") + last;
    laughs += "]\n";
  }
  const std::string long_text = "a: &a " + repeat("x", 100'000) + "\nb: [" + repeat("*a, ", 20'000) + "]\n";
  CHECK_THAT(problem_of(laughs), Catch::EndsWith("too many values (an alias counts as much as what it stands for)"));
  CHECK_THAT(problem_of(long_text), Catch::EndsWith("too many values (an alias counts as much as what it stands for)"));
  for (const std::string open : {"[", "{a: ", "- ", "? "}) {
    INFO(open);
    CHECK_THAT(problem_of(repeat(open, 20'000)), Catch::Contains("nested") || Catch::Contains("key must be text"));
  }
}

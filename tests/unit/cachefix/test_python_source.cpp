// tests/unit/cachefix/python/*.txt: sources, and what is found in them by the interpreter's own parser in a child.
#include "cachefix/files/python_source.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "support/catch.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

using namespace sharefs;
using namespace sharefs::cachefix;
using namespace std::chrono_literals;

namespace {

/// Another version: SHAREFS_TEST_PYTHON=python3.6 build/ci/tests/unit_cachefix '[python]'.
std::string interpreter_of_tests() {
  const char* other = std::getenv("SHAREFS_TEST_PYTHON");
  return other != nullptr ? other : "/usr/bin/python3";
}

sys::Command command_of_tests(const std::string& source, std::chrono::milliseconds deadline) {
  auto command = source_facts_command(source, deadline);
  command.argv[0] = interpreter_of_tests();
  return command;
}

sys::Completed answer_to(const std::string& source, std::chrono::milliseconds deadline = 20s) {
  const auto done = sys::run_process(command_of_tests(source, deadline));
  REQUIRE(done);
  return *done;
}

SourceFacts facts_of(const std::string& source) {
  return parse_source_facts(answer_to(source).out);
}

/// Many sources by one interpreter, which would need most of its time to begin.
std::vector<SourceFacts> facts_of_all(const std::vector<std::string>& sources) {
  auto command = command_of_tests("", 60s);
  command.argv.insert(command.argv.end() - 1, R"(
import io, sys
class Stream:
    def __init__(self, content): self.buffer = io.BytesIO(content)
program, given, answers = compile(sys.argv[1], "program", "exec"), sys.stdin.buffer, sys.stdout.buffer
for length in iter(given.readline, b""):
    sys.stdin, sys.stdout = Stream(given.read(int(length))), Stream(b"")
    try:
        exec(program, {})
    except SystemExit:
        pass
    answers.write(sys.stdout.buffer.getvalue() + b"\n")
)");
  for (const auto& source : sources)
    command.input += std::to_string(source.size()) + "\n" + source;
  command.output_limit = 16U << 20U;
  const auto done = sys::run_process(command);
  REQUIRE(done);
  const auto lines = split_lines(done->out);
  REQUIRE(lines.size() == sources.size());
  std::vector<SourceFacts> all;
  for (const std::string& line : lines)
    all.push_back(parse_source_facts(line));
  return all;
}

std::string summary_of(const SourceFacts& facts) {
  if (!facts.parsed)
    return "not parsed";
  std::string out = "definitions " + std::to_string(facts.definitions);
  const auto add = [&out](bool known, const std::string& text) { out += known ? ", " + text : std::string(); };
  const auto counts = [](int all, int with) { return std::to_string(all) + "/" + std::to_string(with); };
  add(facts.optional, "optional");
  add(facts.hf_arguments, "hf");
  add(facts.dataset_calls != 0, "datasets " + counts(facts.dataset_calls, facts.dataset_calls_with));
  add(facts.model_calls != 0, "models " + counts(facts.model_calls, facts.model_calls_with));
  add(!facts.other_use.empty(), "other " + facts.other_use);
  add(!facts.outputs.empty(), "outputs " + facts.outputs);
  add(facts.escapes, "escapes");
  add(facts.own_layout, "own layout");
  add(!facts.caches.empty(), "caches " + join(facts.caches, " "));
  return out;
}

const std::string k_prelude = "import argparse\n"
                              "import os\n"
                              "from datasets import load_dataset\n"
                              "from transformers import AutoModel\n"
                              "parser = argparse.ArgumentParser()\n"
                              "parser.add_argument(\"--cache_dir\", type=str, default=None)\n"
                              "args = parser.parse_args()\n";

/// Each case of the file is one assertion. Returns how many there were.
int check_cases(const std::string& file, const std::string& prelude) {
  std::ifstream stream(join_path(parent_path(__FILE__), "python/" + file));
  REQUIRE(stream);
  std::stringstream all;
  all << stream.rdbuf();
  std::vector<std::string> names, expected, sources;
  for (const std::string& line : split_lines(all.str())) {
    if (line.starts_with("=== ")) {
      names.push_back(line.substr(4));
      sources.push_back(prelude);
    } else if (expected.size() < names.size()) {
      expected.push_back(line);
    } else if (!names.empty()) { // above the first one stands what the file is
      sources.back() += line + "\n";
    }
  }
  REQUIRE(expected.size() == names.size());
  const auto found = facts_of_all(sources);
  for (std::size_t i = 0; i < names.size(); ++i) {
    INFO(file << ": " << names[i]);
    CHECK(summary_of(found[i]) == expected[i]);
  }
  return static_cast<int>(names.size());
}

} // namespace

TEST_CASE("python source: scripts as people launch them", "[python]") {
  CHECK(check_cases("shapes.txt", "") >= 30);
}

TEST_CASE("python source: where a value goes", "[python]") {
  CHECK(check_cases("flows.txt", k_prelude) >= 40);
}

TEST_CASE("python source: where a value hides", "[python]") {
  CHECK(check_cases("hidden.txt", k_prelude) >= 60);
}

TEST_CASE("python source: imports are those of the whole file, each once", "[python]") {
  const SourceFacts facts = facts_of("import a.b, c as d\nfrom .e import f\nfrom g.h import i\ntry:\n  import a\n"
                                     "except ImportError:\n  pass\ndef j():\n  from k import l\n");
  CHECK(facts.imports == std::vector<std::string>{"a", "c", "g", "k"});
}

TEST_CASE("python source: what is no Python shows nothing", "[python]") {
  const std::vector<std::pair<const char*, std::string>> sources = {
      {"python 2", "print 'hello'\nexec 'x'\n"},
      {"shell", "#!/bin/bash\nset -e\npython train.py --cache_dir \"$X\"\n"},
      {"100,000 parentheses", std::string(100'000, '(') + std::string(100'000, ')')},
      {"100,000 signs", "x = " + std::string(100'000, '-') + "1\n"},
      {"100,000 attributes", "x = a" +
                                 [] {
                                   std::string out;
                                   for (int i = 0; i < 100'000; ++i)
                                     out += ".b";
                                   return out;
                                 }() +
                                 "\n"},
      {"a NUL byte", std::string("x = 1\0\ny = 2\n", 13)},
      {"invalid UTF-8", "x = '\xff\xfe'\n"},
      {"an unknown encoding", "# -*- coding: no_such -*-\nx = 1\n"},
      {"4 MiB", std::string(4U << 20U, '#')},
      {"indentation that runs away", "if x:\n      y\n   z\n"}};
  for (const auto& [name, source] : sources) {
    INFO(name);
    CHECK(facts_of(source) == SourceFacts{});
  }
}

TEST_CASE("python source: an encoding that is named, a byte order mark, and CRLF are read", "[python]") {
  CHECK(facts_of("# -*- coding: latin-1 -*-\nimport a\nx = '\xe4'\n").imports == std::vector<std::string>{"a"});
  CHECK(facts_of("\xef\xbb\xbfimport a\r\nif a:\r\n  pass\r\n").imports == std::vector<std::string>{"a"});
  CHECK(facts_of("").parsed);
}

TEST_CASE("python source: the source is not run", "[python]") {
  const SourceFacts facts = facts_of("import os\nprint('{\"imports\":[\"evil\"]}')\nos._exit(0)\n");
  CHECK(facts.parsed);
  CHECK(facts.imports == std::vector<std::string>{"os"});
}

TEST_CASE("python source: one that is nested too deeply for the interpreter shows nothing", "[python]") {
  for (const char* part : {"(", "[", "-", "not ", "f(", "{1:", "lambda:", "a if b else "})
    for (const int times : {150, 20'000}) {
      std::string source = "import os\ncache_dir = ";
      for (int i = 0; i < times; ++i)
        source += part;
      CAPTURE(part, times);
      CHECK_FALSE(facts_of(source + "\n").parsed);
    }
}

TEST_CASE("python source: names are ASCII on the way, and cut", "[python]") {
  CHECK(facts_of("import \xc3\xa4rger\n").imports == std::vector<std::string>{"\xc3\xa4rger"});
  const SourceFacts facts = facts_of(k_prelude + std::string(10'000, 'f') + "(args.cache_dir)\n");
  CHECK(facts.other_use == std::string(60, 'f') + ", line 8");
}

TEST_CASE("python source: the command is isolated, is the system's own interpreter, and ends", "[python]") {
  const sys::Command command = source_facts_command("x", 300ms);
  REQUIRE(command.argv.size() == 6);
  CHECK(Argv(command.argv.begin(), command.argv.begin() + 5) == Argv{"python3", "-I", "-S", "-E", "-c"});
  CHECK_FALSE(command.user_path);
  CHECK(command.input == "x");
  CHECK(command.deadline == 300ms);
  CHECK(command.output_limit <= 1U << 20U);
  CHECK_FALSE(parse_source_facts(answer_to("import a\n", 1ms).out).parsed);
}

TEST_CASE("python source: an answer that is not the program's own shows nothing") {
  const std::string good = R"({"imports":["a"],"hf_arguments":true,"definitions":1,"optional":true,"dataset_calls":2,)"
                           R"("dataset_calls_with":1,"model_calls":3,"model_calls_with":2,"other_use":"f, line 1",)"
                           R"("outputs":"g, line 2","escapes":true,"own_layout":true,"caches":["HF_HOME=/share/h"]})";
  const SourceFacts facts = parse_source_facts(good);
  CHECK(facts.parsed);
  CHECK(summary_of(facts) == "definitions 1, optional, hf, datasets 2/1, models 3/2, other f, line 1, "
                             "outputs g, line 2, escapes, own layout, caches HF_HOME=/share/h");
  CHECK(facts.imports == std::vector<std::string>{"a"});
  for (std::size_t length = 0; length < good.size(); ++length)
    CHECK(parse_source_facts(good.substr(0, length)) == SourceFacts{});
  CHECK(parse_source_facts("[]") == SourceFacts{});
  CHECK(parse_source_facts("null") == SourceFacts{});
  CHECK(parse_source_facts("{}") == SourceFacts{});
  std::string wrong = good;
  wrong.replace(wrong.find("\"g, line 2\""), 11, "7");
  CHECK(parse_source_facts(wrong) == SourceFacts{});
}

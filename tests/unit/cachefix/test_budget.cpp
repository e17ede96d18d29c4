// What a launch may cost: texts, files and words that somebody wrote to exhaust memory, the stack, or patience. Each is
// read by a child with little memory; behind the budget the command is unchanged, and one line says why.
#include "base/text.hpp"
#include "cachefix/files/config_text.hpp"
#include "given.hpp"
#include "support/catch.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::cachefix;
using test::words;
using test::World;

namespace {

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i)
    all += text;
  return all;
}

Argv repeated(const Argv& some, int times, const Argv& last) {
  Argv all;
  for (int i = 0; i < times; ++i)
    all.insert(all.end(), some.begin(), some.end());
  all.insert(all.end(), last.begin(), last.end());
  return all;
}

/// What `body` says of itself in a child with 1 GiB of address space; the child must end by itself.
template <class Body> bool holds_in_child(const Body& body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    const rlimit memory{1UL << 30U, 1UL << 30U};
    ::setrlimit(RLIMIT_AS, &memory);
#endif
    ::_exit(body() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CAPTURE(WIFSIGNALED(status), WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  CHECK(WIFEXITED(status));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Nothing was changed, and one line says that reading stopped.
bool is_unread(const Sanitized& result, const Argv& argv) {
  return result.argv == argv && result.set.empty() && result.directories.empty() && !result.understood &&
         result.diagnoses.size() == 1 && result.diagnoses[0].code == "SF403" &&
         result.diagnoses[0].severity == Severity::warning &&
         result.diagnoses[0].message.ends_with("so sharefs stopped reading and changed nothing");
}

constexpr const char* k_train = "python train.py --cache_dir /share/c\n";

} // namespace

TEST_CASE("budget: a variable that doubles itself is not expanded without end", "[fork]") {
  const std::string text = "a=" + std::string(64, 'x') + "\n" + repeated("a=$a$a\n", 30) + k_train;
  const World world;
  CHECK(holds_in_child([&] { return is_unread(world.run({"bash", "-c", text}), {"bash", "-c", text}); }));
  CHECK(holds_in_child([&] {
    const ScriptResult script = world.script("x.sh", text);
    return script.text == text && is_unread(script.sanitized, {"bash", "x.sh"});
  }));
}

TEST_CASE("budget: two scripts that source each other behind a guard", "[fork]") {
  World world;
  world.files["/job/a.sh"] = "[ -n \"$A\" ] && return\nA=1\nsource /job/b.sh\nexport HF_HOME=/share/h\n";
  world.files["/job/b.sh"] = "[ -n \"$B\" ] && return\nB=1\nsource /job/a.sh\n";
  const std::string text = std::string("source /job/a.sh\n") + k_train;
  CHECK(holds_in_child([&] { return is_unread(world.run({"bash", "-c", text}), {"bash", "-c", text}); }));
}

TEST_CASE("budget: a tree of scripts that source two others each", "[fork]") {
  World world;
  for (int i = 0; i < 30; ++i)
    world.files["/job/" + std::to_string(i) + ".sh"] = "source /job/" + std::to_string(i + 1) +
                                                       ".sh\nexport A=" + std::to_string(i) + "\nsource /job/" +
                                                       std::to_string(i + 1) + ".sh\n";
  world.files["/job/30.sh"] = "export B=1\n";
  const std::string text = std::string("source /job/0.sh\n") + k_train;
  CHECK(holds_in_child([&] { return is_unread(world.run({"bash", "-c", text}), {"bash", "-c", text}); }));
}

TEST_CASE("budget: eval inside of eval, and many of them", "[fork]") {
  const World world;
  std::string many;
  for (int i = 0; i < 2000; ++i)
    many += "eval 'x=" + std::to_string(i) + "'\n";
  for (const std::string& text : {repeated("eval ", 2000) + k_train, many + k_train})
    CHECK(holds_in_child([&] { return is_unread(world.run({"bash", "-c", text}), {"bash", "-c", text}); }));
}

TEST_CASE("budget: launchers behind launchers in one command line", "[fork]") {
  const World world;
  const Argv train = words("python train.py --cache_dir /share/c");
  for (const Argv& again : {Argv{"env"}, Argv{"nohup"}, Argv{"srun"}, Argv{"nice", "-n", "1"}, Argv{"timeout", "5"},
                            Argv{"mpirun", "-np", "2"}, Argv{"torchrun", "--no-python"}})
    CHECK(holds_in_child([&] {
      const Argv argv = repeated(again, 20'000, train);
      return is_unread(world.run(argv), argv);
    }));
}

TEST_CASE("budget: shells inside of shells in one command line", "[fork]") {
  World world;
  Argv argv = words("python train.py --cache_dir /share/c");
  for (int i = 0; i < 9; ++i)
    argv = {"bash", "-c", shell_join(argv)};
  CHECK(holds_in_child([&] { return world.run(argv).argv == argv; }));
}

TEST_CASE("budget: texts that are nested deeply", "[fork]") {
  const World world;
  const auto wrapped = [](const std::string& open, const std::string& close) {
    return repeated(open, 5000) + "true" + repeated(close, 5000) + "\n" + k_train;
  };
  for (const std::string& text :
       {wrapped("$(", ")"), wrapped("( ", " )"), wrapped("{ ", "; }"), wrapped("if true; then ", "; fi"),
        "a=\"" + repeated("${a:-", 3000) + repeated("}", 3000) + "\"\n" + k_train,
        "((" + repeated("(", 5000) + "1" + repeated(")", 5000) + "))\n" + k_train})
    CHECK(holds_in_child([&] {
      const Sanitized result = world.run({"bash", "-c", text});
      return result.argv == Argv{"bash", "-c", text} && result.diagnoses.size() == 1 &&
             result.diagnoses[0].code == "SF403";
    }));
}

TEST_CASE("budget: long texts end, whatever stands in them", "[fork]") {
  const World world;
  std::string assigned, arrays;
  for (int i = 0; i < 30'000; ++i) {
    assigned += "v=" + std::to_string(i) + "; x$v=$v$v$v\n";
    arrays += "a+=(\"${a[@]}\" {1..99} *$a ${a//x/yyyy})\n";
  }
  for (const std::string& text : {assigned, arrays, repeated("f() { f; f; }\n", 20'000), repeated("f\n", 100'000)})
    CHECK(holds_in_child([&] {
      Budget budget;
      budget.end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
      return world.run({"bash", "-c", text}, {}, budget).argv == Argv{"bash", "-c", text};
    }));
}

TEST_CASE("budget: JSON and YAML that are nested deeply, and aliases of aliases", "[fork]") {
  World world;
  world.files["/job/deep.json"] =
      R"({"cache_dir": "/share/c", "a": )" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
  world.files["/job/open.json"] = R"({"cache_dir": "/share/c", "a": )" + std::string(2'000'000, '{');
  world.files["/job/deep.yaml"] = "cache_dir: /share/c\na: " + std::string(500'000, '[') + std::string(500'000, ']');
  world.files["/job/open.yaml"] = "cache_dir: /share/c\na: " + repeated("{b: ", 500'000);
  std::string laughs = "a0: &a0 {x: 1, cache_dir: /share/c}\n";
  for (int i = 1; i < 30; ++i) {
    const std::string of = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " {a: " + of + ", b: " + of + ", c: " + of + "}\n";
  }
  world.files["/job/laughs.yaml"] = laughs;
  auto& wide = world.files["/job/wide.json"] = R"({"cache_dir": "/share/c")";
  for (int member = 0; member < 200'000; ++member)
    wide += ",\"" + std::to_string(member) + "\":1";
  wide += "}";
  for (const char* name : {"deep.json", "open.json", "wide.json", "deep.yaml", "open.yaml"}) {
    CAPTURE(name);
    CHECK(holds_in_child([&] {
      (void)world.run({"python", "run_clm.py", name});
      (void)world.run({"python", "t.py", "--config", name});
      return true;
    }));
  }
  for (const char* name : {"deep.json", "open.json", "wide.json"})
    CHECK(world.run({"python", "run_clm.py", name}).argv == Argv{"python", "run_clm.py", name});
  const Argv argv = words("python t.py --config laughs.yaml");
  CHECK(holds_in_child([&] { return is_unread(world.run(argv), argv); }));
}

TEST_CASE("budget: many files, and no time") {
  World world;
  Argv argv{"python", "t.py"};
  for (int i = 0; i < 12'000; ++i)
    argv.push_back("/share/" + std::to_string(i) + ".yaml");
  CHECK(is_unread(world.run(argv), argv));
  Budget none;
  none.end = std::chrono::steady_clock::now();
  const Argv train = words("python train.py --cache_dir /share/c");
  CHECK(is_unread(world.run(train, {}, none), train));
  const ScriptResult script = world.script("x.sh", k_train, {}, none);
  CHECK(script.text == k_train);
  CHECK(is_unread(script.sanitized, {"bash", "x.sh"}));
}

TEST_CASE("budget: what people write is far from it") {
  World world;
  for (int i = 0; i < 20; ++i)
    world.files["/job/env" + std::to_string(i) + ".sh"] = "export V" + std::to_string(i) + "=1\n";
  std::string text;
  for (int i = 0; i < 20; ++i)
    text += "source /job/env" + std::to_string(i) + ".sh\n";
  for (int i = 0; i < 500; ++i)
    text += "export N" + std::to_string(i) + "=${N" + std::to_string(i / 2) + "}/x\n";
  const std::string line =
      "env A=1 nohup nice -n 5 timeout 9 stdbuf -oL numactl -N 0 python run_clm.py --cache_dir /share/c";
  const Sanitized result = world.run({"bash", "-c", text + line});
  CHECK(result.understood);
  CHECK(result.argv != Argv{"bash", "-c", text + line});
  Argv files = words("python run_clm.py --cache_dir /share/c");
  for (int i = 0; i < 50'000; ++i)
    files.push_back("/data/part-" + std::to_string(i));
  CHECK(world.run(files).argv != files);
}

TEST_CASE("budget: what is spent stays spent, and says what it was") {
  Budget budget;
  budget.files = 2;
  CHECK(budget.take(&Budget::files));
  CHECK_FALSE(budget.take(&Budget::files, 2));
  CHECK(budget.spent == "it leads to too many files");
  CHECK_FALSE(budget.take(&Budget::steps));
  Budget shallow;
  shallow.depth = 1;
  {
    const Deeper one(shallow);
    CHECK(one);
  }
  const Deeper again(shallow);
  CHECK(again);
  const Deeper two(shallow);
  CHECK_FALSE(two);
  CHECK(nesting_of(R"({"a]]": [1, {"b\"[": 2}], "c": []})", true) == 3);
}

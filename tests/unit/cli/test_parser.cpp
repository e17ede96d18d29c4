#include "cli/parser.hpp"

#include "base/text.hpp"
#include "cli/on_nodes.hpp"
#include "support/catch.hpp"

#include <span>

using namespace sharefs;
using namespace sharefs::cli;

namespace {

Parsed parsed(Argv words) {
  words.insert(words.begin(), "sharefs");
  auto result = parse_command_line(words);
  INFO((result ? "" : result.error().message));
  REQUIRE(result);
  return *result;
}

Error refused(Argv words) {
  words.insert(words.begin(), "sharefs");
  auto result = parse_command_line(words);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::usage);
  return result.error();
}

std::vector<const CommandSpec*> all_commands() {
  std::vector<const CommandSpec*> all;
  for (const auto& group : command_groups())
    for (const auto* row : group.commands)
      if (row->run != nullptr)
        all.push_back(row);
  return all;
}

} // namespace

TEST_CASE("global options may stand before and after the command", "[parser]") {
  for (const Argv& words : {Argv{"--json", "--wait", "3s", "status"}, Argv{"status", "--json", "--wait=3s"}}) {
    const auto result = parsed(words);
    CHECK(result.command->name == "status");
    CHECK(result.flags.json);
    CHECK(result.flags.wait == std::chrono::seconds(3));
  }
}

TEST_CASE("commands of two words, and arguments that look like commands", "[parser]") {
  CHECK(parsed({"conda", "link", "--all"}).command->name == "conda link");
  CHECK(parsed({"export", "check", "f"}).command->name == "export check");
  CHECK(parsed({"export", "check", "f"}).arguments.positional == std::vector<std::string>{"f"});
  const auto mount = parsed({"mount", "status", "--yes"});
  CHECK(mount.command->name == "mount");
  CHECK(mount.arguments.positional == std::vector<std::string>{"status"});
  CHECK(mount.flags.yes);
}

TEST_CASE("everything behind the first -- belongs to the wrapped command", "[parser]") {
  const auto run = parsed({"run", "-q", "--", "-weird", "--version", "--", "[a,b]", ""});
  CHECK(run.command->name == "run");
  CHECK(run.flags.quiet);
  CHECK_FALSE(run.print);
  CHECK(run.arguments.rest == Argv{"-weird", "--version", "--", "[a,b]", ""});
  // for other commands -- ends the options
  CHECK(parsed({"mount", "--yes", "--", "--all"}).arguments.positional == std::vector<std::string>{"--all"});
}

TEST_CASE("mistakes get a hint", "[parser]") {
  CHECK(refused({"moutn"}).hint == "did you mean `mount`?");
  CHECK(refused({"moutn", "--all"}).message == "unknown command `moutn`");
  CHECK(refused({"conda", "lnik"}).hint == "did you mean `link`?");
  CHECK(refused({"conda", "lnik"}).message == "unknown command `conda lnik`");
  CHECK(refused({"conda", "env", "list"}).message == "unknown command `conda env`");
  CHECK(refused({"conda", "env", "list"}).hint.starts_with("`sharefs conda list`"));
  CHECK(refused({"conda", "mount"}).message == "unknown command `conda mount`");
  CHECK(refused({"conda", "install", "numpy"}).hint.starts_with("`sharefs conda update ENV --"));
  CHECK(refused({"conda", "run", "-n", "llm", "python"}).hint.ends_with("`sharefs conda run ENV -- COMMAND`"));
  CHECK(refused({"umount", "-f", "-l", "/x"}).hint == "did you mean `--force`?");
  CHECK(refused({"export", "-ra"}).hint == "did you mean `--all`?");
  CHECK(refused({"mount", "--al"}).hint == "did you mean `--all`?");
  CHECK(refused({"mount", "--dryrun"}).hint == "did you mean `--dry-run`?");
  CHECK(refused({"conda"}).message == "`sharefs conda` needs a command");
  CHECK(refused({"status", "--timeout", "soon", "--bogus"}).message == "unknown option `--bogus`");
  CHECK(refused({"--bogus", "status"}).message == "unknown option `--bogus`");
  CHECK(refused({"--check", "up"}).message == "`--check` stands in front of its command");
  CHECK(refused({"--check", "up"}).hint == "write it behind: `sharefs up --check`");
  CHECK(refused({"run", "--dry-run"}).message == "there is no command to run");
  CHECK(refused({"mount", "-x"}).hint == "run `sharefs mount --help`"); // as near to -q as to -n
  CHECK(refused({"mount", "--all=1"}).message == "option `--all` takes no value");
  CHECK(refused({"--help=1"}).message == "option `--help` takes no value");
  CHECK(refused({"run", "--"}).message == "there is no command behind `--`");
  CHECK(refused({"probe"}).message == "HOST is missing");
  CHECK(refused({"probe", "a", "b"}).message == "unexpected argument `b`");
  CHECK(refused({"mount", "--dry-run", "--check"}).message == "`--dry-run` and `--check` exclude each other");
  CHECK(refused({"mount", "--config"}).hint == "run `sharefs mount --help`");
  CHECK(refused({"mount", "--config="}).message == "option `--config` needs a value: FILE");
  CHECK(refused({"mount", "--config"}).message == "option `--config` needs a value: FILE");
  CHECK(refused({"mount", "--config", ""}).message == "option `--config` needs a value: FILE");
  CHECK(refused({"--root", "/a", "--root", "/b", "mount"}).message == "option `--root` was given 2 times");
  CHECK(refused({"mount", "--config", "--json"}).message == "option `--config` needs a value: FILE");
  CHECK(refused({"mount", "--json=yes"}).message == "option `--json` takes no value");
  CHECK(refused({"mount", "-nx"}).message == "unknown option `-x`");
  CHECK(refused({"link"}).hint == "did you mean `conda link`?");
  CHECK(refused({"hlep"}).hint == "did you mean `help`?");
  CHECK(refused({"nothing", "like", "it"}).hint == "run `sharefs --help`");
  CHECK(refused({"mount", "--wait", "1", "--wait", "2"}).message == "option `--wait` was given 2 times");
}

TEST_CASE("an empty value behind = takes no other word as the value", "[parser]") {
  CHECK(refused({"conda", "gc", "--forget=", "llm_train", "--yes"}).message == "option `--forget` needs a value: HOST");
  CHECK(refused({"nodes", "trust", "--key=", "gpu1"}).message == "option `--key` needs a value: FILE");
  CHECK(refused({"nodes", "trust", "--key=", "gpu1"}).hint == "run `sharefs nodes trust --help`");
  CHECK(refused({"--config=", "up", "--yes"}).message == "option `--config` needs a value: FILE");
  CHECK(refused({"--on=", "status"}).message == "option `--on` needs a value: NODES");
  CHECK(refused({"up", "--yes="}).message == "option `--yes` takes no value");
  CHECK(refused({"run", "--local=", "python3", "train.py"}).message == "option `--local` needs a value: FLAG");
  for (const auto* command : all_commands()) {
    std::vector<const OptionSpec*> options;
    for (const auto& one : command->options)
      options.push_back(&one);
    for (const auto& one : global_options())
      options.push_back(&one);
    if (command->on_nodes)
      for (const auto& one : fleet_options())
        options.push_back(&one);
    for (const auto* option : options) {
      const auto name = split(option->names, ',').back();
      auto words = split_words(command->name);
      words.insert(words.end(), {name + "=", "word", "more"});
      INFO(join(words, " "));
      CHECK(refused(words).message == (option->value.empty()
                                           ? "option `" + name + "` takes no value"
                                           : "option `" + name + "` needs a value: " + std::string(option->value)));
    }
  }
  // The words of another program are its own.
  CHECK(parsed({"run", "--", "x", "--a=", "b"}).arguments.rest == Argv{"x", "--a=", "b"});
  CHECK(parsed({"run", "-q", "x", "--config=", "b", "--a="}).arguments.rest == Argv{"x", "--config=", "b", "--a="});
  CHECK(parsed({"conda", "run", "env", "x", "--wait="}).arguments.rest == Argv{"x", "--wait="});
  CHECK(parsed({"conda", "update", "--message", "--a=", "env", "x"}).arguments.value("message") == "--a=");
  CHECK(parsed({"status", "--config", "a="}).flags.config == "a=");
}

TEST_CASE("an option with its value is not the value of another one", "[parser]") {
  CHECK(refused({"conda", "gc", "--forget", "--keep=3"}).message == "option `--forget` needs a value: HOST");
  CHECK(refused({"mount", "--config", "--wait=3s", "a"}).message == "option `--config` needs a value: FILE");
}

TEST_CASE("the forms of an option", "[parser]") {
  for (const Argv& words :
       {Argv{"mount", "-nqv", "a"}, Argv{"-qv", "mount", "a", "-n"}, Argv{"mount", "-n", "a", "-v", "-q"}}) {
    const auto result = parsed(words);
    CHECK(result.flags.dry_run);
    CHECK(result.flags.quiet);
    CHECK(result.flags.verbose);
    CHECK(result.arguments.positional == std::vector<std::string>{"a"});
  }
  CHECK(parsed({"--config", "mount", "status"}).flags.config == "mount");
  CHECK(parsed({"status", "--config=a=b"}).flags.config == "a=b");
  CHECK(parsed({"export", "check", "-"}).arguments.positional == std::vector<std::string>{"-"});
  CHECK(parsed({"conda", "link", "--user", "a", "--user=b"}).arguments.list("user") ==
        std::vector<std::string>{"a", "b"});
  CHECK(parsed({"recover", "--timeout", "-5"}).arguments.value("timeout") == "-5");
}

TEST_CASE("a malformed duration names its option", "[parser]") {
  CHECK(refused({"mount", "--wait", "soon"}).message == "option `--wait` does not understand `soon`");
}

TEST_CASE("help and version", "[parser]") {
  for (const char* words : {"--version", "-V", "version"})
    CHECK(parsed({words}).print->starts_with("sharefs "));
  CHECK(parsed({"help"}).print == parsed({"--help"}).print);
  CHECK(parsed({"help", "conda", "link"}).print == parsed({"conda", "link", "--help"}).print);
  for (const Argv& words : {Argv{"help", "conda"}, Argv{"conda", "help"}, Argv{"conda", "--help"}})
    CHECK(parsed(words).print->find("\n  unlink ") != std::string::npos);
  CHECK(parsed({"conda", "help", "link"}).print == parsed({"conda", "link", "--help"}).print);
  CHECK(parsed({"help", "options"}).print->find("\n  --root DIR ") != std::string::npos);
  CHECK(parsed({"help"}).print->find("`sharefs help options`") != std::string::npos);
  CHECK(parsed({"mount", "--help"}).print->find("\n  --root DIR ") == std::string::npos);
  CHECK(parsed({"help", "help"}).print == parsed({"--help"}).print);
  CHECK(parsed({"help", "version"}).print == parsed({"--help"}).print);
  for (const Argv& words : {Argv{"version", "version"}, Argv{"--json", "version"}})
    CHECK(refused(words).hint == "write it in front of all else: `sharefs version`");
  CHECK(refused({"version", "help"}).hint == "write it in front of all else: `sharefs help`");
  CHECK(refused({"version", "moutn"}).hint == "did you mean `mount`?");
  CHECK(refused({"help", "moutn"}).hint == "did you mean `mount`?");
  CHECK(parsed({}).print->find("Usage: sharefs COMMAND") != std::string::npos);
  CHECK(parsed({"mount", "-h"}).print->find("Usage: sharefs mount") != std::string::npos);
}

TEST_CASE("help fits the terminal", "[parser]") {
  std::vector<Argv> all{{"--help"}, {"conda", "--help"}};
  for (const auto* command : all_commands()) {
    all.push_back(split_words(command->name));
    all.back().emplace_back("--help");
  }
  for (const std::size_t width : {60U, 80U, 100U})
    for (auto words : all) {
      words.insert(words.begin(), "sharefs");
      for (const auto& line : split_lines(*parse_command_line(words, width)->print)) {
        CAPTURE(width, words, line);
        CHECK(trim(line) != "words"); // CLI11's name for the arguments of `conda run`
        CHECK((line.size() <= width || line.find(' ', line.find_first_not_of(' ')) == std::string::npos));
      }
    }
}

TEST_CASE("a command to run needs no dashes, and has them where its own words begin with one", "[parser]") {
  const auto run = parsed({"run", "--explain", "python", "--version", "--", "x"});
  CHECK(run.arguments.rest == Argv{"python", "--version", "--", "x"});
  CHECK(run.arguments.flag("explain"));
  CHECK(parsed({"conda", "update", "llm", "--yes", "pip", "install", "x"}).arguments.rest ==
        Argv{"pip", "install", "x"});
}

TEST_CASE("every command has what a person needs in its help", "[parser]") {
  for (const auto* command : all_commands()) {
    CAPTURE(command->name);
    CHECK_FALSE(command->summary.empty());
    CHECK_FALSE(command->description.empty());
    CHECK(command->example.find("sharefs " + std::string(command->name)) != std::string_view::npos);
    for (const auto& option : command->options) {
      CAPTURE(option.names);
      CHECK_FALSE(option.help.empty());
    }
  }
}

TEST_CASE("behind its own words a command may have dashes of its own", "[cli]") {
  const auto rest_of = [](const Argv& argv) {
    const auto parsed = cli::parse_command_line(argv);
    return parsed ? parsed->arguments.rest.value_or(Argv{}) : Argv{parsed.error().message};
  };
  const Argv wanted{"git", "log", "--", "-x"};
  CHECK(rest_of({"sharefs", "conda", "run", "llm", "--", "git", "log", "--", "-x"}) == wanted);
  CHECK(rest_of({"sharefs", "conda", "run", "llm", "git", "log", "--", "-x"}) == wanted);
  CHECK(rest_of({"sharefs", "conda", "run", "--config", "f", "-v", "llm", "git", "log", "--", "-x"}) == wanted);
  CHECK(rest_of({"sharefs", "conda", "run", "llm", "-v", "--", "git", "log", "--", "-x"}) == wanted);
}

TEST_CASE("no short option takes a value, because `--on` reads -nv as -n -v") {
  const auto check = [](std::span<const OptionSpec> options) {
    for (const auto& option : options)
      CHECK((option.names.starts_with("--") || option.value.empty()));
  };
  check(global_options());
  check(change_options());
  for (const auto* command : all_commands())
    check(command->options);
}

// sharefs on a scripted machine, command by command, compared with what tests/golden/commands/*.txt expect, byte for
// byte. A file is one machine and its story:
//
//   root                          only as root: homes have owners
//   machine                       as JSON (tests/support/machine.hpp); what can be said by the other lines need not be
//   host NAME ADDRESS             node1 10.0.0.2, if it is not said; with systemd, asked by root
//   user NAME UID                 a user of the host
//   dir PATH [MODE [UID]]         below the root; `file` has its content below it
//   file PATH [MODE [UID]]
//   link PATH TARGET [UID]
//   mount SOURCE TARGET TYPE [OPTIONS]   is in the mount table
//   hung TARGET, stale TARGET     how a mount answers; `well TARGET` ends it
//   server HOST EXPORT CLIENT...  an NFS server that lets this host mount EXPORT; `dead HOST`: one that does not answer
//   run PROGRAM ARGUMENT...       a program that succeeds and prints the lines below
//   asked [TIMES]                 exportfs, asked in namespaces of its own, writes the lines below to etab; where it is
//                                 not said, it exports what the text says (exportfs_of_the_text)
//   real PROGRAM                  the one program that is really run
//   env NAME=VALUE                for the commands after it
//   width COLUMNS                 both outputs are a terminal of that width from now on; 0: none
//   stdin                         a person at a terminal, who types the lines below it to the next command
//   > COMMAND                     without `sharefs`; the clock goes on by a second. Then what is expected of it:
//   exit CODE, stdout, stderr, calls (programs, mounts), files (what changed below the root; `- PATH`: is gone)
//
// Mounts and unmounts succeed unless the machine says something else.
// A command that ends in exec(2) must be the last of its file.
#include "base/path.hpp"
#include "cli/app.hpp"
#include "cli/parser.hpp"
#include "exports/ask.hpp"
#include "exports/host.hpp"
#include "plan/unified_diff.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"
#include "sys/programs/isolation.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <list>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sharefs;
using test::GoldenPart;
namespace fs = std::filesystem;

namespace {

/// Journal and lock have tests of their own.
constexpr const char* k_state = "/var/lib/sharefs";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// A stand-in for the exportfs that is asked in namespaces: an etab of what the text of its files says.
Result<sys::Completed> exportfs_of_the_text(const sys::Command& command, const sys::Files& host) {
  if (!command.isolation || command.argv != Argv{"exportfs", "-r"})
    return fail(ErrorCode::unsupported,
                "the script of this machine does not know `run " + shell_join(command.argv) + "`");
  auto files = exports::read_host_files(host).value().files;
  for (const auto& [path, text] : command.isolation->files)
    if (path.ends_with("exports")) {
      std::erase_if(files, [&path = path](const auto& file) { return file.name == path; });
      files.push_back(exports::parse(text, path));
    }
  std::ranges::sort(files, {}, &exports::ExportsFile::name);
  sys::Completed completed;
  completed.exit_code = 0;
  for (const auto& entry : exports::predict_from_text(files, {}).entries)
    completed.out += fmt::format("{}\t{}({})\n", entry.directory, entry.client, join(entry.options, ","));
  return completed;
}

class Story {
 public:
  explicit Story(const std::string& root) : m_root(root) {
    fs::create_directories(root + k_state);
    machine().identity.addresses = {"10.0.0.2"};
    machine().identity.systemd = true;
  }
  /// Called with the whole text when a command has become another program; does not return.
  std::function<void(const std::string&)> on_exec;

  /// The file of the case as it should be written.
  std::string play(const std::vector<GoldenPart>& parts) {
    bool after_command = false;
    for (const auto& part : parts) {
      if (part.is_command()) {
        m_written.push_back({part.line, {}});
        perform(part.command());
        after_command = true;
      } else if (!(after_command && is_expectation(part))) {
        m_written.push_back(part);
        if (!part.line.empty() && part.line.front() != '#')
          describe(part);
      }
    }
    return write_golden(m_written);
  }

 private:
  static bool is_expectation(const GoldenPart& part) {
    return part.line.starts_with("exit ") || part.line == "stdout" || part.line == "stderr" || part.line == "calls" ||
           part.line == "files";
  }

  void describe(const GoldenPart& part) {
    auto words = split_words(part.line);
    const std::string kind = words.front();
    const auto rest = [&words](std::size_t from) {
      return std::vector<std::string>(words.begin() + static_cast<std::ptrdiff_t>(std::min(from, words.size())),
                                      words.end());
    };
    const auto number = [&words](std::size_t index, unsigned fallback, int base) {
      return words.size() > index ? static_cast<unsigned>(std::stoul(words[index], nullptr, base)) : fallback;
    };
    const std::string first = words.size() > 1 ? words[1] : "";
    const std::string path = m_root + first;
    if (kind == "dir" || kind == "file" || kind == "link")
      fs::create_directories(fs::path(path).parent_path());
    if (kind == "root") {
      // Whoever may not give files away is not asked to: see the test case.
    } else if (kind == "machine") {
      auto read = test::Machine::from_json(part.text());
      if (!read)
        throw std::runtime_error(read.error().message);
      if (part.text().find("\"identity\"") == std::string::npos)
        read->identity = machine().identity;
      machine() = std::move(*read);
    } else if (kind == "host") {
      machine().identity.hostname = first;
      machine().identity.addresses = rest(2);
    } else if (kind == "user") {
      const auto id = number(2, 0, 10);
      machine().users.push_back({first, id, id, {id}, "/home/" + first});
    } else if (kind == "dir") {
      fs::create_directories(path);
      set_owner_and_mode(path, number(2, 0755, 8), number(3, 0, 10));
    } else if (kind == "file") {
      std::ofstream(path, std::ios::binary) << part.text();
      set_owner_and_mode(path, number(2, 0644, 8), number(3, 0, 10));
    } else if (kind == "link") {
      fs::create_symlink(words.at(2), path);
      if (words.size() > 3 && ::lchown(path.c_str(), number(3, 0, 10), number(3, 0, 10)) != 0)
        throw std::runtime_error("cannot give " + path + " away");
    } else if (kind == "mount") {
      machine().add_mount(words.at(1), words.at(2), words.at(3), words.size() > 4 ? words[4] : "");
      fs::create_directories(m_root + words[2]);
    } else if (kind == "hung" || kind == "stale") {
      sys::Entry& entry = machine().entries[first];
      entry.error_number = kind == "hung" ? ETIMEDOUT : ESTALE;
      entry.detail = kind == "hung" ? "no answer to statfs within 2.0 s" : "Stale file handle";
    } else if (kind == "well") {
      machine().entries.erase(first);
    } else if (kind == "server") {
      machine().nfs[first] = test::nfs_server(first, words.at(2), rest(3));
    } else if (kind == "dead") {
      machine().nfs[first] = test::dead_nfs_server(first);
    } else if (kind == "run") {
      test::Answer answer;
      answer.question = {{"argv", rest(1)}, {"isolated", false}};
      answer.completed.exit_code = 0;
      answer.completed.out = part.text();
      machine().run.push_back(std::move(answer));
    } else if (kind == "asked") {
      test::Answer answer;
      answer.question = {{"argv", {"exportfs", "-r"}}, {"isolated", true}};
      answer.completed.exit_code = 0;
      answer.completed.out = part.text();
      answer.times = static_cast<int>(number(1, 0, 10));
      machine().run.push_back(std::move(answer));
    } else if (kind == "real") {
      machine().on_run = [first](const sys::Command& command) -> Result<sys::Completed> {
        if (command.argv.front() != first)
          return fail(ErrorCode::not_found, "`" + command.argv.front() + "` was not found");
        return sys::run_process(command);
      };
    } else if (kind == "env") {
      const std::string name = part.line.substr(4, part.line.find('=') - 3);
      std::erase_if(m_environment, [&](const std::string& one) { return one.starts_with(name); });
      m_environment.push_back(part.line.substr(4));
    } else if (kind == "width") {
      m_console.width = static_cast<int>(number(1, 0, 10));
      m_console.out_terminal = m_console.err_terminal = m_console.width != 0;
    } else if (kind == "stdin") {
      m_console.in_terminal = true;
      m_typed = part.text();
    } else {
      throw std::runtime_error("unknown line: " + part.line);
    }
  }

  static void set_owner_and_mode(const std::string& path, unsigned mode, unsigned uid) {
    if (uid != 0 && ::chown(path.c_str(), uid, uid) != 0)
      throw std::runtime_error("cannot give " + path + " away");
    ::chmod(path.c_str(), mode);
  }

  test::Machine& machine() { return m_system->machine; }

  /// Every path below the root: what it is.
  [[nodiscard]] std::map<std::string, std::string> snapshot() const {
    std::map<std::string, std::string> found;
    for (auto entry = fs::recursive_directory_iterator(m_root); entry != fs::end(entry); ++entry) {
      const auto path = entry->path().string();
      const auto name = path.substr(m_root.size());
      if (name == k_state) {
        entry.disable_recursion_pending();
        continue;
      }
      struct stat status{};
      if (::lstat(path.c_str(), &status) != 0)
        continue;
      const auto mode = format_mode(status.st_mode & 07777U);
      if (entry->is_symlink())
        found[name] = "-> " + fs::read_symlink(entry->path()).string();
      else if (entry->is_directory())
        found[name] = mode + " directory";
      else
        found[name] = mode + "\n" + test::content_of(path);
    }
    return found;
  }

  void expect(const std::string& line, const std::string& text) {
    static const std::regex k_times(R"(("took_ms": )[0-9]+)");
    if (!text.empty())
      m_written.push_back({line, split_lines(std::regex_replace(replaced(text, m_root, "ROOT"), k_times, "$1N"))});
  }

  void perform(Argv argv) {
    argv.insert(argv.begin(), "sharefs");
    machine().now += std::chrono::seconds(1);
    if (!machine().on_run)
      machine().on_run = [this](const sys::Command& command) {
        return exportfs_of_the_text(command, m_system->files());
      };
    if (std::exchange(m_first, false)) {
      machine().mount.emplace_back();
      machine().unmount.emplace_back();
    }
    const auto first_call = m_system->calls().size();
    const auto before = snapshot();
    std::istringstream in(std::exchange(m_typed, {}));
    std::ostringstream out, err;
    cli::Host host{[this](const std::string&) { return m_system; }, in, out, err, m_console, m_environment, "/work"};
    const auto note = [&](const std::string& exit, const std::string& executed) {
      m_written.push_back({"exit " + exit, {}});
      expect("stdout", out.str());
      expect("stderr", err.str());
      // Groups of a plan run at the same time, mounts beside programs: each kind in its order.
      std::vector<std::string> made(m_system->calls().begin() + static_cast<std::ptrdiff_t>(first_call),
                                    m_system->calls().end());
      std::ranges::stable_partition(made, [](const std::string& call) { return call.starts_with("run "); });
      std::string calls;
      for (const auto& call : made)
        calls += call + "\n";
      expect("calls", calls + executed);
      expect("files", changes(before, snapshot()));
    };
    machine().on_exec = [&](const Argv&, const std::vector<std::string>& environment) {
      std::string variables;
      for (const auto& variable : environment)
        if (std::ranges::find(m_environment, variable) == m_environment.end())
          variables += "with " + variable + "\n";
      note("of the program", variables);
      on_exec(write_golden(m_written));
    };
    const int code = cli::run(argv, host);
    note(std::to_string(code), "");
    m_console.in_terminal = false;
  }

  static std::string changes(const std::map<std::string, std::string>& before,
                             const std::map<std::string, std::string>& after) {
    std::string text;
    for (const auto& [name, what] : before)
      if (!after.contains(name))
        text += "- " + name + "\n";
    for (const auto& [name, what] : after) {
      const auto old = before.find(name);
      if (old != before.end() && old->second == what)
        continue;
      const auto lines = split_lines(what);
      text += name + " " + lines.front() + "\n";
      for (std::size_t i = 1; i < lines.size(); ++i)
        text += lines[i].empty() ? "\n" : "  " + lines[i] + "\n";
    }
    return text;
  }

  std::string m_root;
  std::shared_ptr<test::ScriptedSystem> m_system = std::make_shared<test::ScriptedSystem>(m_root);
  std::vector<std::string> m_environment{"HOME=/root", "PATH=/usr/bin:/bin"};
  ui::ConsoleOptions m_console;
  std::string m_typed;
  std::vector<GoldenPart> m_written;
  bool m_first = true;
};

/// A story that is played in a child, for a command line changes its process: signal handlers, the log, exec(2).
class Played {
 public:
  explicit Played(const fs::path& golden) : file(golden), expected(test::content_of(golden)) {
    ::chmod(m_directory.path().c_str(), 0755); // work is done as other users, too
    m_child = ::fork();
    if (m_child == 0)
      play();
  }

  [[nodiscard]] pid_t child() const { return m_child; }
  /// What was found, by a child that has ended so.
  [[nodiscard]] std::string found(int status) const {
    return WIFEXITED(status) ? test::content_of(m_result) : fmt::format("ended by signal {}\n", WTERMSIG(status));
  }

  fs::path file;
  std::string expected;

 private:
  [[noreturn]] void play() const {
    const auto finish = [this](const std::string& text) {
      std::ofstream(m_result, std::ios::binary) << text << std::flush;
      ::_exit(0);
    };
    try {
      Story story(m_directory / "root");
      story.on_exec = finish;
      finish(story.play(test::read_golden(expected)));
    } catch (const std::exception& exception) {
      finish(std::string("the test could not run: ") + exception.what() + "\n");
    }
    ::_exit(1);
  }

  test::TemporaryDirectory m_directory;
  std::string m_result = m_directory / "result";
  pid_t m_child = 0;
};

/// The `sharefs ...` of hints that cannot be typed as they stand.
std::vector<std::string> wrong_hints(const std::string& text) {
  static const std::regex k_command("`sharefs ([^`]*)`");
  std::vector<std::string> wrong;
  for (const auto& line : split_lines(text)) {
    if (line.find("hint: ") == std::string::npos && line.find("undo with `") == std::string::npos)
      continue;
    for (auto one = std::sregex_iterator(line.begin(), line.end(), k_command); one != std::sregex_iterator(); ++one) {
      auto words = test::shell_words((*one)[1].str());
      words.insert(words.begin(), "sharefs");
      const auto parsed = cli::parse_command_line(words);
      const auto lacks_name = [&] {
        const auto& options = parsed->command->options;
        return std::ranges::any_of(options, [](const auto& option) { return option.names == "--all"; }) &&
               parsed->arguments.positional.empty() && !parsed->arguments.flag("all");
      };
      if (!parsed || (parsed->command != nullptr && lacks_name()))
        wrong.push_back(line);
    }
  }
  return wrong;
}

} // namespace

TEST_CASE("a hint that cannot be typed is seen") {
  CHECK(wrong_hints("hint: run `sharefs mount share`\n1 done; undo with `sharefs undo X`").empty());
  for (const char* hint :
       {"hint: run `sharefs export`", "hint: run `sharefs moutn share`", "hint: `sharefs mount --al`"})
    CHECK(wrong_hints(hint).size() == 1);
}

TEST_CASE("commands on a scripted machine") {
  constexpr std::size_t k_at_once = 24; // some wait for seconds
  std::vector<fs::path> files;
  for (const auto& file : test::golden_files("commands"))
    if (const auto parts = test::read_golden(test::content_of(file));
        parts.empty() || parts.front().line != "root" || ::geteuid() == 0)
      files.push_back(file);
  std::size_t passed = 0;
  std::list<Played> playing;
  for (std::size_t begun = 0; begun < files.size() || !playing.empty();) {
    if (begun < files.size() && playing.size() < k_at_once) {
      playing.emplace_back(files[begun++]);
      continue;
    }
    int status = 0;
    const auto story = std::ranges::find(playing, ::waitpid(-1, &status, 0), &Played::child);
    REQUIRE(story != playing.end());
    const auto found = story->found(status);
    if (test::updates_golden() && found != story->expected)
      std::ofstream(story->file, std::ios::binary) << found;
    INFO(plan::unified_diff(story->file.string(), story->expected, found));
    const bool good = test::updates_golden() || found == story->expected;
    const auto wrong = wrong_hints(found);
    CHECK(good);
    CHECK(wrong == std::vector<std::string>{});
    passed += good && wrong.empty() ? 1U : 0U;
    playing.erase(story);
  }
  fmt::print("{} of {} golden cases passed\n", passed, files.size()); // for tests/support/count.py
  CHECK(files.size() >= 20);
}

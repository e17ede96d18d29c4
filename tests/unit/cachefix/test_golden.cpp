// The golden corpus: tests/golden/cachefix/*.txt, one file per launcher. SHAREFS_UPDATE_GOLDEN=1 writes what is found
// (read the diff before you commit it).
#include "base/text.hpp"
#include "given.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace sharefs;
using namespace sharefs::cachefix;
using test::World;

namespace {

constexpr const char* k_shared = "/share/c";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// Local directories are written as {/share/c}: the hash is not for people.
std::string readable(const Sanitized& result, std::string text) {
  for (const auto& [directory, shared] : result.origins)
    text = replaced(text, directory, "{" + shared + "}");
  return text;
}

/// Words as a shell would split them: '...', "..." and \x.
Argv shell_words(const std::string& line) {
  Argv argv;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else if (c == '\\' && quote == '"' && i + 1 < line.size())
        word += line[++i];
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == '\\' && i + 1 < line.size()) {
      word += line[++i];
      in_word = true;
    } else if (c == ' ') {
      if (in_word)
        argv.push_back(std::exchange(word, {}));
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word)
    argv.push_back(word);
  return argv;
}

struct Outcome {
  std::vector<std::string> lines;
};

std::vector<std::string> outcome_of(const World& world, const Argv& argv) {
  const Sanitized result = world.run(argv);
  std::vector<std::string> lines;
  std::string chain;
  for (const auto& [name, index] : result.chain)
    chain += " " + name + "@" + std::to_string(index);
  if (!chain.empty())
    lines.push_back("chain" + chain);
  for (const ScriptFound& script : result.scripts)
    lines.push_back("script " + replaced(script.name, "\n", "\\n") + "@" + std::to_string(script.index) +
                    (script.framework.empty() ? "" : " " + script.framework));
  if (result.argv == argv)
    lines.emplace_back("same");
  else
    lines.push_back("argv " + readable(result, shell_join(result.argv)));
  for (const auto& [name, value] : result.set)
    lines.push_back("set " + name + "=" + readable(result, value));
  for (const std::string& name : result.unset)
    lines.push_back("unset " + name);
  for (const FileCopy& copy : result.copies)
    lines.push_back("file " + readable(result, replaced(copy.content, "\n", "\\n")));
  for (const ModelLink& link : result.links)
    lines.push_back("link " + link.target);
  for (const Diagnosis& diagnosis : result.diagnoses)
    lines.push_back("says " + diagnosis.code);
  return lines;
}

/// A line of the head of a file that describes the world: `mount /share nfs4`, `env A=b`, `link /a /b`, `names DIR a
/// b`, `text FILE CONTENT` with \n for line ends, `dir /job`.
void describe_world(World& world, const std::string& line) {
  const auto parts = split_words(line);
  if (parts.size() < 2)
    return;
  if (parts[0] == "mount")
    world.mounts.emplace_back(parts[1], parts[2]);
  else if (parts[0] == "env")
    world.environment.push_back(parts[1]);
  else if (parts[0] == "link")
    world.links[parts[1]] = parts[2];
  else if (parts[0] == "names")
    world.directories[parts[1]] = {parts.begin() + 2, parts.end()};
  else if (parts[0] == "text")
    world.files[parts[1]] = replaced(line.substr(line.find(parts[1]) + parts[1].size() + 1), "\\n", "\n");
  else if (parts[0] == "dir")
    world.directory = parts[1];
}

} // namespace

TEST_CASE("golden corpus of launch lines (requirements 2, 3, 4)") {
  namespace fs = std::filesystem;
  const fs::path directory = fs::path(__FILE__).parent_path() / "../../golden/cachefix";
  const bool update = std::getenv("SHAREFS_UPDATE_GOLDEN") != nullptr;
  std::size_t launch_lines = 0;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().extension() == ".txt")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    std::ifstream in(file);
    std::stringstream content;
    content << in.rdbuf();
    World world;
    std::string written;
    std::vector<std::string> expected;
    std::optional<std::string> command;
    const auto check = [&] {
      if (!command)
        return;
      ++launch_lines;
      CAPTURE(file.filename().string(), *command);
      const auto found = outcome_of(world, shell_words(*command));
      if (!update)
        CHECK(join(found, "\n") == join(expected, "\n"));
      // Whatever it is: applying twice equals applying once.
      const Sanitized once = world.run(shell_words(*command));
      World again = world;
      for (const std::string& name : once.unset)
        std::erase_if(again.environment, [&](const std::string& entry) { return entry.starts_with(name + "="); });
      for (const auto& [name, value] : once.set)
        again.environment.push_back(name + "=" + value);
      const Sanitized twice = again.run(once.argv);
      CHECK(twice.argv == once.argv);
      CHECK(twice.set.empty());
      for (const std::string& line : found)
        written += "  " + line + "\n";
      command.reset();
      expected.clear();
    };
    for (const std::string& line : split_lines(content.str())) {
      if (line.starts_with("  ")) {
        expected.push_back(line.substr(2));
        continue;
      }
      check();
      written += line + "\n";
      if (line.starts_with("> "))
        command = line.substr(2);
      else if (!line.empty() && line[0] != '#')
        describe_world(world, line);
    }
    check();
    if (update)
      std::ofstream(file) << written;
  }
  CHECK(launch_lines >= 200);
  (void)k_shared;
}

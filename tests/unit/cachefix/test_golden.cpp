// The golden corpus: tests/golden/cachefix/*.txt, one file per launcher (tests/support/golden.hpp).
#include "base/text.hpp"
#include "given.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"

using namespace sharefs;
using namespace sharefs::cachefix;
using test::installed;
using test::World;

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// Local directories are written as {/share/c}: the hash is not for people.
std::string readable(const RunPlan& result, std::string text) {
  for (const auto& [directory, shared] : result.directories)
    text = replaced(text, directory, "{" + shared + "}");
  for (const Decision& one : result.guarded)
    text = replaced(text, one.to.value_or("none"), "{" + one.stands_for + "}");
  return text;
}

std::vector<std::string> outcome_of(const World& world, const Argv& argv) {
  const RunPlan result = world.run(argv, installed());
  std::vector<std::string> lines;
  std::string chain;
  for (const ChainLink& link : result.chain)
    chain += " " + link.name + "@" + std::to_string(link.index);
  if (!chain.empty())
    lines.push_back("chain" + chain);
  for (const ScriptFound& script : result.scripts)
    lines.push_back("script " + replaced(script.name, "\n", "\\n") + "@" + std::to_string(script.index) +
                    (script.framework ? " " + *script.framework : ""));
  if (result.argv == argv)
    lines.emplace_back("same");
  else
    lines.push_back("argv " + readable(result, shell_join(result.argv)));
  for (const Decision& one : result.guarded)
    if (!one.implied)
      lines.push_back("guards " + one.flag + " " + readable(result, one.to.value_or("there")));
  const bool guard = result.set.contains("PYTHONPATH");
  if (guard)
    lines.emplace_back("guarded");
  for (const auto& [name, value] : result.set)
    if (!guard || (name != "PYTHONPATH" && !name.starts_with("SHAREFS_")))
      lines.push_back("set " + name + "=" + readable(result, value));
  for (const auto& [path, target] : result.links)
    lines.push_back("link " + target);
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
  std::size_t launch_lines = 0;
  for (const auto& file : test::golden_files("cachefix")) {
    auto parts = test::read_golden(test::content_of(file));
    World world;
    for (auto& part : parts) {
      if (!part.is_command()) {
        if (!part.line.empty() && part.line[0] != '#')
          describe_world(world, part.line);
        continue;
      }
      ++launch_lines;
      CAPTURE(file.filename().string(), part.line);
      const auto found = outcome_of(world, part.command());
      if (!test::updates_golden())
        CHECK(join(found, "\n") == join(part.block, "\n"));
      // Whatever it is: applying twice equals applying once.
      const RunPlan once = world.run(part.command(), installed());
      World again = world;
      for (const auto& [name, value] : once.set)
        std::erase_if(again.environment,
                      [&, &name = name](const auto& entry) { return entry.starts_with(name + "="); });
      for (const auto& [name, value] : once.set)
        again.environment.push_back(name + "=" + value);
      const RunPlan twice = again.run(once.argv, installed());
      CHECK(twice.argv == once.argv);
      CHECK(twice.set.empty());
      part.block = found;
    }
    if (test::updates_golden())
      std::ofstream(file, std::ios::binary) << test::write_golden(parts);
  }
  CHECK(launch_lines >= 200);
}

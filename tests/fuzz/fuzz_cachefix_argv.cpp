// Any command line: with no shared path in sight nothing changes; applying twice equals applying once; words outside of
// the reported changes are untouched. Input: one byte for the world, then words separated by NUL.
#include "support/fuzz.hpp"
#include "unit/cachefix/given.hpp"

#include <algorithm>
#include <cstdint>

using namespace sharefs;
using namespace sharefs::cachefix;

namespace {

/// The words of the original that no change names, in order, are a subsequence of the result.
bool others_are_untouched(const Argv& argv, const RunPlan& result) {
  std::set<std::size_t> touched;
  for (const Decision& change : result.changes)
    if (change.index)
      touched.insert(*change.index);
  std::size_t at = 0;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    if (touched.contains(i))
      continue;
    while (at < result.argv.size() && result.argv[at] != argv[i])
      ++at;
    if (at++ == result.argv.size())
      return false;
  }
  return true;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < 2 || size > 4096)
    return 0;
  Argv argv(1);
  for (std::size_t i = 1; i < size; ++i)
    if (bytes[i] == 0)
      argv.emplace_back();
    else
      argv.back() += static_cast<char>(bytes[i]);
  test::World world;
  world.directories["/share/m"] = {"models--a--b"};
  world.files["/job/a.sh"] = "ssh n1 python t.py\n";
  const bool shared = (bytes[0] & 1U) != 0;
  if (!shared)
    world.mounts = {{"/", "ext4"}, {"/share", "xfs"}};
  if ((bytes[0] & 2U) != 0)
    world.mounts.emplace_back("/home", shared ? "nfs" : "ext4");

  Rules rules;
  if ((bytes[0] & 4U) != 0)
    rules = test::installed();

  const RunPlan once = world.run(argv, rules);
  FUZZ_CHECK(shared || (once.argv == argv && once.set.empty()));
  FUZZ_CHECK(others_are_untouched(argv, once));
  for (const ScriptFound& script : once.scripts)
    FUZZ_CHECK(script.index < argv.size());
  for (const ChainLink& link : once.chain)
    FUZZ_CHECK(link.index < argv.size());
  for (const std::string_view name : {"HOME", "HF_HOME", "XDG_CACHE_HOME"})
    FUZZ_CHECK(!once.set.contains(std::string(name)));

  test::World again = world;
  for (const auto& [name, value] : once.set)
    std::erase_if(again.environment, [&, &name = name](const auto& entry) { return entry.starts_with(name + "="); });
  for (const auto& [name, value] : once.set)
    again.environment.push_back(name + "=" + value);
  const RunPlan twice = again.run(once.argv, rules);
  FUZZ_CHECK(twice.argv == once.argv);
  FUZZ_CHECK(twice.set.empty());
  return 0;
}

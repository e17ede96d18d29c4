// Any rule of the user: never a crash, and what a rule keeps is kept. Input: flag, program glob, value, separated by
// NUL; the first byte says local or keep.
#include "support/fuzz.hpp"
#include "unit/cachefix/given.hpp"

#include "base/text.hpp"

#include <cstdint>

using namespace sharefs;
using namespace sharefs::cachefix;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < 2 || size > 1024)
    return 0;
  const auto parts = split(std::string_view(reinterpret_cast<const char*>(bytes) + 1, size - 1), '\0');
  UserRule rule;
  rule.local = (bytes[0] & 1U) != 0;
  rule.flag = parts[0];
  rule.program = parts.size() > 1 ? parts[1] : std::string();
  rule.origin = "fuzz";
  const std::string value = parts.size() > 2 ? parts[2] : std::string("/share/c");
  test::World world;
  world.environment.push_back("HF_DATASETS_CACHE=/share/ds");
  Rules rules;
  rules.user = {rule};
  const Argv argv = {"python", "t.py", rule.flag, value, "--cache_dir", "/share/x", "--output_dir", "/share/o"};
  const RunPlan result = world.run(argv, rules);
  if (!rule.local && rule.program.empty())
    for (const Decision& change : result.changes)
      FUZZ_CHECK(change.flag != rule.flag);
  for (const Decision& change : result.changes)
    FUZZ_CHECK(change.flag != "--output_dir" || rule.local);
  return 0;
}

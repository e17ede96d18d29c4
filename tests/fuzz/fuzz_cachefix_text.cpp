// Texts that others wrote are looked through for words: never a crash, and every line that is named is in the text.
#include "cachefix/script.hpp"
#include "support/fuzz.hpp"
#include "support/scripted_system.hpp"

#include <algorithm>
#include <cstdint>

using namespace sharefs;
using namespace sharefs::cachefix;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), std::min<std::size_t>(size, 1U << 16U));
  const auto lines = std::ranges::count(text, '\n') + 1;
  test::ScriptedSystem system;
  Facts facts(system, {});
  const ScriptReport report = read_script(text, facts, {});
  for (const auto* const mentions : {&report.programs, &report.caches, &report.losses})
    for (const Mention& one : *mentions)
      FUZZ_CHECK(one.line >= 1 && one.line <= lines);
  return 0;
}

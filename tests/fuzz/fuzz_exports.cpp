// Reading exports(5) never crashes, and what is written is read back as the same exports.
#include "exports/ask.hpp"
#include "exports/diagnose.hpp"
#include "exports/facts.hpp"
#include "exports/parse.hpp"
#include "support/fuzz.hpp"
#include "unit/exports/told.hpp"

#include <string_view>

using namespace sharefs;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto file = exports::parse(text, "exports");
  // An entry can be read and not be written: its defaults of two words may be too long for one.
  std::vector<exports::Export> writable(file.read().begin(), file.read().end());
  std::erase_if(writable, [](const exports::Export& entry) { return !exports::unwritable(entry).empty(); });
  const auto again = exports::parse(exports::format(writable), "again");
  FUZZ_CHECK(again.complete);
  FUZZ_CHECK(exports::without_places(again.exports) == exports::without_places(writable));

  const auto foretold = exports::predict_from_text({file}, {});
  FUZZ_CHECK(foretold.outcomes.at(0).size() == file.exports.size() && foretold.entries.size() <= file.taken);
  for (const auto& diagnosis : exports::diagnose({file}, foretold, {}))
    FUZZ_CHECK(!diagnosis.message.empty() && diagnosis.subject.starts_with("exports:"));
  static_cast<void>(exports::read_answer(text, {file}, {}));
  return 0;
}

// Texts that others wrote: syntax trees, shell scripts, Python sources, YAML. Never a crash; offsets stay in the text.
// Input: shell text, NUL, the tree's JSON.
#include "cachefix/config_text.hpp"
#include "cachefix/shell.hpp"
#include "cachefix/shell_sanitize.hpp"
#include "support/fuzz.hpp"
#include "unit/cachefix/given.hpp"

#include <cstdint>

using namespace sharefs;
using namespace sharefs::cachefix;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(bytes), size);
  const auto cut = std::min(input.find('\0'), input.size());
  const std::string text = input.substr(0, cut);
  const std::string tree = cut < input.size() ? input.substr(cut + 1) : std::string();
  (void)read_shell(text, tree);
  Facts facts;
  facts.directory = "/job";
  facts.any_shared = false;
  facts.trees[text] = tree;
  const ScriptResult script = sanitize_script("x.sh", text, facts, {});
  FUZZ_CHECK(script.text == text); // nothing is shared: nothing changes

  test::World world;
  facts.any_shared = true;
  facts.local = world.local;
  facts.home = "/home/alice";
  for (int round = 0; round < 4; ++round) {
    const ScriptResult shared = sanitize_script("x.sh", text, facts, {});
    for (const std::string& path : shared.sanitized.questions.places) {
      sys::Entry place;
      place.path = place.resolved = path;
      place.shared = path.starts_with("/share");
      facts.places[path] = place;
    }
    for (const std::string& path : shared.sanitized.questions.texts)
      facts.texts[path] = std::nullopt;
    for (const std::string& path : shared.sanitized.questions.listings)
      facts.listings[path] = std::vector<std::string>{};
    for (const std::string& inner : shared.sanitized.questions.trees)
      facts.trees[inner] = std::nullopt;
  }
  (void)evidence_of(text);
  const auto value = yaml_scalar(text, "cache_dir");
  if (value)
    FUZZ_CHECK(!yaml_scalar(with_yaml_scalar(text, "cache_dir", std::nullopt), "cache_dir"));
  return 0;
}

// Texts that others wrote: syntax trees, shell scripts, Python sources, YAML. Never a crash; offsets stay in the text.
// Input: shell text, NUL, the tree's JSON.
#include "cachefix/files/config_text.hpp"
#include "cachefix/shell/shell.hpp"
#include "support/fuzz.hpp"
#include "unit/cachefix/given.hpp"

#include <cstdint>

using namespace sharefs;
using namespace sharefs::cachefix;

namespace {

/// World with one syntax tree, whatever it says.
class TreeAnswers : public test::WorldAnswers {
 public:
  TreeAnswers(const test::World& world, std::string text, std::string tree)
      : WorldAnswers(world), m_text(std::move(text)), m_tree(std::move(tree)) {}
  std::optional<std::string> syntax_tree(const std::string& text, std::chrono::milliseconds) override {
    return text == m_text ? std::optional(m_tree) : std::nullopt;
  }

 private:
  std::string m_text, m_tree;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(bytes), size);
  const auto cut = std::min(input.find('\0'), input.size());
  const std::string text = input.substr(0, cut);
  const std::string tree = cut < input.size() ? input.substr(cut + 1) : std::string();
  Budget budget;
  (void)read_shell(text, tree, budget);
  (void)nested_yaml_scalars(text, budget);
  (void)parse_source_facts(text);
  test::World world;
  TreeAnswers answers(world, text, tree);
  Stakes stakes(answers);
  (void)sanitize_script("x.sh", text, world.first(), stakes, {});
  world.mounts = {{"/", "ext4"}};
  TreeAnswers alone(world, text, tree);
  Stakes nothing_shared(alone);
  FUZZ_CHECK(sanitize_script("x.sh", text, world.first(), nothing_shared, {}).text == text);
  const auto value = scalar_in("a.yaml", text, "cache_dir");
  if (value)
    FUZZ_CHECK(!scalar_in("a.yaml", with_scalar("a.yaml", text, "cache_dir", std::nullopt), "cache_dir"));
  return 0;
}

#include "config/keys.hpp"
#include "documents.hpp"
#include "support/catch.hpp"
#include "support/tree_file.hpp"

#include <algorithm>
#include <set>

using namespace sharefs;
using namespace sharefs::config;

TEST_CASE("the key table is well formed", "[keys]") {
  std::set<std::string_view> seen;
  for (const auto& key : keys()) {
    INFO(key.name);
    CHECK(seen.insert(key.name).second);
    CHECK_FALSE(key.description.empty());
    CHECK(key.description.find_first_of("\n") == std::string_view::npos);
    CHECK_FALSE(key.description.ends_with('.'));
    CHECK_FALSE((key.required && !key.fallback().empty()));
    if (key.type == ValueType::choice || key.type == ValueType::access) {
      const auto choices = key.choice_list();
      CHECK(choices.size() > 1);
      CHECK((key.required || std::ranges::find(choices, key.fallback()) != choices.end()));
    }
    // A parent stands before its children.
    const auto dot = key.name.rfind('.');
    if (dot != std::string_view::npos) {
      const auto parent = key.name.substr(0, dot);
      CHECK(seen.contains(parent));
    }
  }
}

TEST_CASE("children_of: the keys of each place", "[keys]") {
  const auto names = [](std::string_view parent) {
    std::string out;
    for (const Key* child : children_of(parent))
      out += std::string(child->last_name()) + (child->is_element() ? "[] " : " ");
    return out;
  };
  CHECK(names("") == "version servers mounts conda caches nodes mirror stage watch ");
  CHECK(names("servers") == "* ");
  CHECK(names("servers.*") == "address exports[] ");
  CHECK(names("servers.*.exports[]") == "path clients[] options access ");
  CHECK(names("servers.*.exports[].clients[]") == "hosts options ");
  CHECK(names("servers.*.exports[].access") == "group mode sticky ");
  CHECK(names("mounts.*") == "from at profile options boot shares[] ");
  CHECK(names("mounts.*.shares[].access") == names("servers.*.exports[].access"));
  CHECK(names("mounts.*.at").empty());
  CHECK(names("nowhere").empty());
}

TEST_CASE("docs/configuration.md has the table of the keys", "[keys]") {
  INFO("SHAREFS_GOLDEN_UPDATE=1 writes it");
  const auto page = test::tree_file("docs/configuration.md");
  const auto begin = std::min(page.find("| key | value |"), page.size());
  const auto end = std::min(page.find("\n\n", begin), page.size() - 1) + 1;
  const auto wanted = page.substr(0, begin) + keys_markdown() + page.substr(end);
  CHECK(test::tree_file("docs/configuration.md", wanted) == wanted);
}

#include "conda/ask_homes.hpp"

#include "support/catch.hpp"

#include <mutex>
#include <set>

using namespace sharefs;
using namespace sharefs::conda;

namespace {

sys::MountTable table_of(const std::vector<std::pair<std::string, std::string>>& mounts) {
  std::vector<sys::MountEntry> entries;
  for (const auto& [target, type] : mounts) {
    sys::MountEntry entry;
    entry.id = static_cast<int>(entries.size()) + 1;
    entry.parent = entries.empty() ? 0 : 1;
    entry.target = target;
    entry.fs_type = type;
    entries.push_back(entry);
  }
  return sys::MountTable(entries);
}

} // namespace

TEST_CASE("one home of a mount goes ahead", "[conda]") {
  const std::vector<std::string> paths{"/home/a", "/home/b", "/local/c", "/local/d",
                                       "",        "/auto/e", "/auto/f",  "/home/g"};
  struct Row {
    std::string why;
    std::vector<std::pair<std::string, std::string>> mounts;
    std::set<std::size_t> silent; ///< do not answer
    std::set<std::size_t> skipped;
  };
  const std::vector<Row> rows{
      {"all answer", {{"/", "ext4"}, {"/home", "nfs4"}, {"/auto", "autofs"}}, {}, {}},
      {"the first of a network mount", {{"/", "ext4"}, {"/home", "nfs4"}, {"/auto", "autofs"}}, {0}, {1, 7}},
      {"another of a network mount", {{"/", "ext4"}, {"/home", "nfs4"}, {"/auto", "autofs"}}, {1}, {}},
      {"a local one", {{"/", "ext4"}, {"/home", "nfs4"}, {"/auto", "autofs"}}, {2}, {}},
      {"below autofs each is its own", {{"/", "ext4"}, {"/home", "nfs4"}, {"/auto", "autofs"}}, {5}, {}},
      {"/home is local", {{"/", "ext4"}, {"/home", "ext4"}}, {0}, {}},
      {"no table", {}, {0}, {}},
  };
  for (const auto& row : rows) {
    CAPTURE(row.why);
    std::mutex mutex;
    std::multiset<std::size_t> asked, skipped;
    ask_homes(
        table_of(row.mounts), paths,
        [&](std::size_t index) {
          const std::lock_guard lock(mutex);
          asked.insert(index);
          return !row.silent.contains(index);
        },
        [&](std::size_t index, std::size_t scout) {
          const std::lock_guard lock(mutex);
          CHECK(scout == 0);
          skipped.insert(index);
        });
    CHECK(std::set<std::size_t>(skipped.begin(), skipped.end()) == row.skipped);
    CHECK(asked.size() + skipped.size() == paths.size());
    for (std::size_t index = 0; index < paths.size(); ++index)
      CHECK(asked.count(index) + skipped.count(index) == 1);
  }
}

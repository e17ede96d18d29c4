#include "plan/action.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::plan;

TEST_CASE("the inverse of the inverse is the action again") {
  for (const auto& action : test::samples()) {
    const auto inverse = invert(action);
    if (!inverse || std::holds_alternative<Unmount>(action) || std::holds_alternative<Mount>(action))
      continue;
    const auto* access = std::get_if<SetAccess>(&action);
    if (access != nullptr && !access->before)
      continue;
    CAPTURE(describe(action));
    auto expected = action;
    if (auto* exchange = std::get_if<ExchangeForLink>(&expected))
      exchange->device = 0; // another one after a boot
    if (auto* make = std::get_if<Directory>(&expected))
      make->parent = {};
    if (auto* link = std::get_if<Link>(&expected))
      link->identity = link->identity.owner_only();
    if (auto* files = std::get_if<ChangeFiles>(&expected))
      for (auto& change : files->changes) { // a new content is another file
        const auto inode = change.before.empty() ? change.identity.inode : 0;
        change.identity = change.identity.owner_only();
        change.identity.inode = inode;
      }
    CHECK(invert(*inverse) == expected);
  }
}

TEST_CASE("inverses") {
  CHECK(invert(File{"/a", std::nullopt, "new", 0600}) == Action(remove_file("/a", "new", 0600)));
  CHECK(invert(File{"/a", "old", "new", 0600}) == Action(File{"/a", "new", "old", 0600}));
  CHECK(invert(make_directory("/a", 0700, test::alice())) == Action(remove_directory("/a", 0700, test::alice())));
  CHECK(invert(make_link("/a", "t")) == Action(remove_link("/a", "t")));
  CHECK(invert(Rename{"/a", "/b", {}}) == Action(Rename{"/b", "/a", {}}));
  CHECK(invert(Mount{"s:/x", "/m", "nfs", "ro", std::chrono::milliseconds(1)}) ==
        Action(Unmount{"/m", false, false, "s:/x", "nfs", "ro"}));
  CHECK(invert(Unmount{"/m", true, true, "s:/x", "nfs", "ro"}) == Action(Mount{"s:/x", "/m", "nfs", "ro"}));
  CHECK(invert(RunTool{{"start"}, {"stop"}, false, {0, 5}}) == Action(RunTool{{"stop"}, {"start"}, false, {0, 5}}));
  CHECK(invert(RunTool{{"reload"}, {}, true}) == Action(RunTool{{"reload"}, {}, true}));
}

TEST_CASE("what cannot be taken back has no inverse") {
  CHECK_FALSE(invert(RunTool{{"sync"}, {}}));
  CHECK_FALSE(invert(RemoveTree{"/a", 1, 2}));
  CHECK_FALSE(invert(Unmount{"/m", false, false, "", "", ""})); // nobody knows what was there
}

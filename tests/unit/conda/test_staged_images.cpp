#include "conda/staged_images.hpp"

#include "link_machine.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::conda;
using test::FakeHomes;

namespace {

/// A host on which root has staged.
struct ImageMachine : FakeHomes {
  const std::string copies = "/stage/0/%data%share%conda/llm";
  const std::string copy = copies + "/0003";

  ImageMachine() {
    directory(copy);
    file(copy + ".sqfs");
    file(complete_mark(copy));
    auto& mark = entry(complete_mark(copy));
    mark.uid = 0;
    mark.content = "/data/share/conda/.generations/llm/0003\n7\n" + std::string(64, 'a') + "\n";
  }
  std::vector<StagedImage> find() { return find_staged_images(*this, {"/stage"}); }
  static std::vector<std::string> words(const plan::Plan& plan) {
    std::vector<std::string> words;
    for (const auto& step : plan.steps)
      words.push_back(plan::describe(step.action));
    return words;
  }
};

using Words = std::vector<std::string>;

} // namespace

TEST_CASE("staged images are found on this host alone, and mounted where they are not", "[conda]") {
  ImageMachine machine;
  const StagedImage image{.name = "llm", .copy = machine.copy, .has_mount_point = true};
  CHECK(machine.find() == std::vector{image});
  CHECK(ImageMachine::words(mount_staged({image})) == Words{"mount " + machine.copy + ".sqfs on " + machine.copy});
  CHECK(unmount_staged({image}, false).empty());
  REQUIRE(diagnose_staged({image}).size() == 1);
  CHECK(diagnose_staged({image}).front().code == "SF535");
  auto mounted = image;
  mounted.is_mounted = true;
  auto& tree = machine.entry(machine.copy);
  tree.mount = machine.copy;
  tree.fs_type = "squashfs";
  CHECK(machine.find() == std::vector{mounted});
  CHECK(mount_staged({mounted}).empty());
  CHECK(ImageMachine::words(unmount_staged({mounted}, true)) == Words{"unmount " + machine.copy + " (lazy)"});
  CHECK(diagnose_staged({mounted}).empty());
}

TEST_CASE("what root has not staged as an image is none", "[conda]") {
  ImageMachine machine;
  REQUIRE(machine.find().size() == 1);
  auto& mark = machine.machine().entries.at(complete_mark(machine.copy));
  SECTION("a directory of files") {
    mark.content = "/data/share/conda/.generations/llm/0003\n7\n";
  }
  SECTION("not whole") {
    mark.kind = sys::EntryKind::missing;
  }
  SECTION("a mark of somebody else") {
    mark.uid = 2001;
  }
  SECTION("another name") {
    machine.entry(machine.copies).names = {"0003", "0003.complete", "0003x.sqfs"};
  }
  CHECK(machine.find().empty());
}

TEST_CASE("the unit of staged images says what systemd reads", "[conda]") {
  const auto text = staged_unit_text({"/usr/bin/sharefs", "--config", "/etc/100%.yaml"}, {"/a", "/b"});
  CHECK(text.find("ExecStart=/usr/bin/sharefs --config /etc/100%%.yaml conda stage --mount --yes\n") !=
        std::string::npos);
  CHECK(text.find("RequiresMountsFor=/a /b\n") != std::string::npos);
}

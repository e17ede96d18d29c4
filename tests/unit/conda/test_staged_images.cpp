#include "conda/staged_images.hpp"

#include "link_machine.hpp"
#include "support/catch.hpp"
#include "sys/fs/sha256.hpp"

#include <cerrno>

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
  std::vector<StagedImage> find(const std::vector<std::string>& binds = {}) {
    return find_staged_images(*this, {"/stage"}, binds);
  }
  static std::vector<std::string> unmounting(const std::vector<StagedImage>& images, bool lazy) {
    plan::Plan plan;
    unmount_staged(images, lazy, {}, plan);
    return words(plan);
  }
  static sys::MountTable with_share() {
    sys::MountEntry root, share;
    root.id = share.parent = 1;
    root.target = "/";
    share.id = 2;
    share.target = "/data/share";
    share.fs_type = "nfs4";
    return sys::MountTable({root, share});
  }
  static plan::Plan unmounting_with_share(const std::vector<StagedImage>& images, bool lazy = false) {
    plan::Plan plan;
    plan.add("/data/share", "", plan::Unmount{.target = "/data/share", .source = {}, .fs_type = {}, .options = {}});
    unmount_staged(images, lazy, with_share(), plan);
    return plan;
  }
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
  auto found = machine.find();
  REQUIRE(found.size() == 1);
  const auto image = found.front();
  CHECK(image.name() == "llm");
  CHECK(image.mount == plan::Mount{machine.copy + ".sqfs", machine.copy, "squashfs", "ro,nosuid,nodev"});
  CHECK(ImageMachine::words(mount_staged({image})) == Words{"mount " + machine.copy + ".sqfs on " + machine.copy});
  CHECK(ImageMachine::unmounting({image}, false).empty());
  REQUIRE(diagnose_staged({image}).size() == 1);
  CHECK(diagnose_staged({image}).front().code == "SF535");
  auto& tree = machine.entry(machine.copy);
  tree.mount = machine.copy;
  tree.fs_type = "squashfs";
  found = machine.find();
  REQUIRE(found.size() == 1);
  const auto mounted = found.front();
  CHECK((mounted.is_mounted && !image.is_mounted));
  CHECK(mount_staged({mounted}).empty());
  CHECK(ImageMachine::unmounting({mounted}, true) == Words{"unmount " + machine.copy + " (lazy)"});
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
  SECTION("the image is gone") {
    machine.entry(machine.copy + ".sqfs").kind = sys::EntryKind::missing;
  }
  CHECK(machine.find().empty());
}

TEST_CASE("what needs a share waits for it, and goes before it", "[conda]") {
  ImageMachine machine;
  auto& mark = machine.machine().entries.at(complete_mark(machine.copy));
  SECTION("the image on the share") {
    mark.content += "owner=2001\n";
    machine.entry(machine.copy + ".sqfs").kind = sys::EntryKind::missing;
    auto found = machine.find();
    REQUIRE(found.size() == 1);
    CHECK(found[0].mount.source == "/data/share/conda/.generations/llm/0003.sqfs");
    CHECK(mount_staged(found).empty());
    CHECK(mount_staged(found, true).steps.size() == 1);
    CHECK(diagnose_staged(found).front().fix == "sharefs mount --all");
    found[0].is_mounted = true;
    const auto plan = ImageMachine::unmounting_with_share(found);
    REQUIRE(plan.steps.size() == 2);
    CHECK(plan.steps[0].group == "/data/share");
    CHECK(std::get<plan::Unmount>(plan.steps[0].action).target == machine.copy);
  }
  SECTION("a copy over a directory of the share") {
    mark.content = "/data/share/c4\n0\n" + std::string(64, 'a') + "\n";
    CHECK(machine.find().size() == 1);
    const auto found = machine.find({"/data/share/c4"});
    REQUIRE(found.size() == 2);
    CHECK(ImageMachine::words(mount_staged(found, true)) == Words{"bind " + machine.copy + " to /data/share/c4"});
  }
  SECTION("a copy over a directory that the share has no more") {
    mark.content = "/data/share/c4\n0\n" + std::string(64, 'a') + "\n";
    auto found = machine.find({"/data/share/c4"});
    std::erase_if(found, [](const StagedImage& one) { return one.mount.fs_type != "bind"; });
    REQUIRE(found.size() == 1);
    const auto named = take_out_gone(machine, found);
    REQUIRE(named.size() == 1);
    CHECK(named.front().hint == "`sharefs stage --drop /data/share/c4` takes the copy away");
    CHECK(found.empty());
    machine.directory("/data/share/c4");
    found = machine.find({"/data/share/c4"});
    CHECK(take_out_gone(machine, found).empty());
  }
  SECTION("a copy over a directory, before its image and the share") {
    mark.content = "/data/share/c4\n0\n" + std::string(64, 'a') + "\n";
    auto found = machine.find({"/data/share/c4"});
    REQUIRE(found.size() == 2);
    found[0].is_mounted = found[1].is_mounted = true;
    const auto plan = ImageMachine::unmounting_with_share(found);
    CHECK(ImageMachine::words(plan) ==
          Words{"unmount /data/share/c4", "unmount " + machine.copy, "unmount /data/share"});
    CHECK(std::ranges::all_of(plan.steps, [](const plan::Step& step) { return step.group == "/data/share"; }));
    // It cannot be reached through a dead share, and is detached with it.
    CHECK(ImageMachine::words(ImageMachine::unmounting_with_share(found, true)) ==
          Words{"unmount " + machine.copy + " (lazy)", "unmount /data/share"});
  }
}

TEST_CASE("an empty copy lies over no directory of a share", "[conda]") {
  ImageMachine machine;
  auto& mark = machine.machine().entries.at(complete_mark(machine.copy));
  mark.content = "/data/share/c4\n0\n" + std::string(64, 'a') + "\n";
  const auto over_share = [&] {
    auto found = machine.find({"/data/share/c4"});
    std::erase_if(found, [](const StagedImage& one) { return one.mount.fs_type != "bind"; });
    return found.size() == 1 && is_missing(found.front(), ImageMachine::with_share());
  };
  CHECK_FALSE(over_share()); // its image could not be mounted
  auto& tree = machine.entry(machine.copy);
  tree.mount = machine.copy;
  tree.fs_type = "squashfs";
  CHECK(over_share());
  mark.content = "/data/share/c4\n0\n"; // files
  tree.mount = "/";
  CHECK(over_share());
  tree.kind = sys::EntryKind::missing;
  CHECK_FALSE(over_share());
}

TEST_CASE("of several copies of a directory the newest lies over it", "[conda]") {
  ImageMachine machine;
  const auto copies = staged_directory("/stage", 0, "/data/share/c4");
  std::int64_t when = 10;
  for (const auto& name : {std::string(16, 'a'), std::string(16, 'c'), std::string(16, 'b')}) { // c is the newest
    const auto mark = complete_mark(copies + "/" + name);
    machine.directory(copies + "/" + name);
    machine.file(mark);
    auto& entry = machine.entry(mark);
    entry.content = "/data/share/c4\n0\n";
    entry.mtime = name.front() == 'c' ? 20 : ++when;
  }
  auto found = machine.find({"/data/share/c4"});
  std::erase_if(found, [](const StagedImage& one) { return one.mount.fs_type != "bind"; });
  REQUIRE(found.size() == 1);
  CHECK(found.front().copy.tree.path == copies + "/" + std::string(16, 'c'));
}

TEST_CASE("an older copy of files is unmounted before another one is mounted over the directory", "[conda]") {
  ImageMachine machine;
  const std::string copies = "/stage/0/%data%share/c4";
  sys::MountEntry disk, share, bound;
  disk.id = disk.parent = share.parent = 1;
  disk.target = disk.root = "/";
  disk.major = bound.major = 8;
  share.id = bound.parent = 2;
  share.target = "/data/share";
  share.fs_type = "nfs4";
  bound.id = 3;
  bound.target = "/data/share/c4";
  bound.root = copies + "/old";
  const sys::MountTable table({disk, share, bound});
  const CopyMark mark{.source = bound.target, .state = {}};
  const auto older = older_bind(machine, bind_of(copies + "/new", mark), table);
  REQUIRE(older);
  CHECK(*older == plan::unmount_of(bind_of(copies + "/old", mark)));
  CHECK_FALSE(older_bind(machine, bind_of(copies + "/old", mark), table));
  CHECK_FALSE(older_bind(machine, bind_of("/stage/0/%data%share/other/new", mark), table)); // of somebody else
}

TEST_CASE("an image that was written to since is mounted only if it is what it was", "[conda]") {
  ImageMachine machine;
  auto& mark = machine.machine().entries.at(complete_mark(machine.copy));
  machine.entry(machine.copy + ".sqfs").mtime += 1;
  SECTION("it is another one") {
    auto found = machine.find();
    REQUIRE(found.size() == 1);
    const auto named = take_out_damaged(machine, found, {});
    CHECK(found.empty());
    REQUIRE(named.size() == 1);
    CHECK(named.front().code == "SF536");
    CHECK(named.front().subject == machine.copy + ".sqfs");
    CHECK(named.front().hint == "`sharefs conda stage llm` brings it again");
  }
  SECTION("of a directory") {
    const auto copy = staged_directory("/stage", 0, "/data/share/c4") + "/" + std::string(16, 'b');
    machine.directory(copy);
    machine.file(copy + ".sqfs");
    machine.file(complete_mark(copy));
    machine.entry(complete_mark(copy)).content = "/data/share/c4\n0\n" + std::string(64, 'a') + "\n";
    machine.entry(copy + ".sqfs").mtime += 1;
    auto found = machine.find();
    const auto named = take_out_damaged(machine, found, {});
    REQUIRE(named.size() == 2);
    CHECK(named.front().hint == "`sharefs stage /data/share/c4` brings it again");
  }
  SECTION("it is as it was") {
    mark.content = "/data/share/conda/.generations/llm/0003\n7\n" + sys::sha256("text") + "\n";
    auto found = machine.find();
    CHECK(take_out_damaged(machine, found, {}).empty());
    CHECK(found.size() == 1);
  }
}

TEST_CASE("the unit of staged images says what systemd reads", "[conda]") {
  const auto text = staged_unit_text({"/usr/bin/sharefs", "--config", "/etc/100%.yaml"}, {"/a", "/b"});
  CHECK(text.find("ExecStart=/usr/bin/sharefs --config /etc/100%%.yaml conda stage --mount --yes\n") !=
        std::string::npos);
  CHECK(text.find("RequiresMountsFor=/a /b\n") != std::string::npos);
  const auto odd = staged_unit_text({"/usr/bin/sharefs", "--config", "/etc/a $b %c \"d.yaml"}, {"/a", "/b c%d"});
  CHECK(odd.find("ExecStart=/usr/bin/sharefs --config \"/etc/a $$b %%c \\\"d.yaml\" conda stage") != std::string::npos);
  CHECK(odd.find("RequiresMountsFor=/a \"/b c%%d\"\n") != std::string::npos);
}

TEST_CASE("an image that a disk or server fails to read is not a missing one", "[conda]") {
  ImageMachine machine;
  machine.file("/images/a.sqfs");
  CHECK(probe_image(machine, "/images/a", 0).check());
  machine.file("/images/a.sqfs.json");
  machine.entry("/images/a.sqfs.json").error_number = EACCES;
  CHECK(probe_image(machine, "/images/a", 0).check());
  machine.entry("/images/a.sqfs.json").error_number = EIO;
  CHECK_FALSE(probe_image(machine, "/images/a", 0).check());
}

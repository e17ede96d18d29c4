#include "conda/staged_path.hpp"

#include "link_machine.hpp"
#include "support/catch.hpp"
#include "sys/process/wire.hpp"

#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>

using namespace sharefs;
using namespace sharefs::conda;
using test::FakeHomes;

namespace {

/// A directory of the share, which whoever works here may read, and the place of its image.
struct DirectoryMachine : FakeHomes {
  PathStagingRequest request{.path = "/share/c4", .store = "/share/images", .at = "/stage"};

  DirectoryMachine() {
    file("/share/c4/one", "1");
    file("/share/c4/two", "2");
    directory("/share/images");
  }
  [[nodiscard]] std::vector<std::string> images() {
    auto names = static_cast<sys::System&>(*this).entry({.path = request.store, .list = true}).names;
    return names;
  }
};

} // namespace

TEST_CASE("an image is of what the directory held when it was looked at", "[conda]") {
  DirectoryMachine machine;
  const auto packed = survey_path(machine, machine.request, {});
  REQUIRE(packed);
  SECTION("nothing changes") {
    REQUIRE(pack_path(machine, machine.request, *packed, {}));
    CHECK(machine.images().size() == 2);
  }
  SECTION("two nodes make it, and one is kept: others may copy it already") {
    REQUIRE(pack_path(machine, machine.request, *packed, {}));
    const auto first = static_cast<sys::System&>(machine).entry({.path = packed->image + ".sqfs"});
    REQUIRE(pack_path(machine, machine.request, *packed, {}));
    const auto second = static_cast<sys::System&>(machine).entry({.path = packed->image + ".sqfs"});
    CHECK(second.inode == first.inode);
    CHECK(machine.images().size() == 2);
  }
  SECTION("a file has come since") {
    machine.file("/share/c4/three", "3");
    const auto made = pack_path(machine, machine.request, *packed, {});
    REQUIRE_FALSE(made);
    CHECK(made.error().code == ErrorCode::conflict);
    CHECK(made.error().message == "/share/c4 has changed while it was read");
    CHECK(machine.images().empty());
  }
  SECTION("a file of the same size was written again within the second") {
    const auto path = static_cast<sys::System&>(machine).files().root() + "/share/c4/one";
    const auto second = ::time(nullptr) - 1000;
    const auto fingerprint_at = [&](long nanoseconds) {
      const timespec times[]{{second, nanoseconds}, {second, nanoseconds}};
      REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
      return survey_path(machine, machine.request, {})->survey.fingerprint;
    };
    CHECK(fingerprint_at(1) != fingerprint_at(2));
    CHECK(fingerprint_at(2) == fingerprint_at(2));
  }
}

TEST_CASE("a directory over which another command has mounted its copy since has not changed", "[conda]") {
  if (::geteuid() != 0)
    return; // only root's copies are mounted over a directory
  DirectoryMachine machine;
  const auto packed = survey_path(machine, machine.request, {});
  REQUIRE(packed);
  machine.file("/share/c4/three", "3"); // what is seen there is the copy, with other times
  const auto copy =
      staged_directory("/stage", 0, "/share/c4") + "/" + packed->survey.fingerprint.substr(0, k_hash_digits);
  machine.directory(copy);
  machine.file(complete_mark(copy), format_mark({.source = "/share/c4", .state = text_of(packed->survey)}));
  CHECK_FALSE(check_unchanged(machine, machine.request, packed->survey, {}));
  machine.machine().mounts = *sys::MountTable::parse("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:1 " + copy +
                                                     " /share/c4 ro - ext4 /dev/sda1 rw\n");
  CHECK(check_unchanged(machine, machine.request, packed->survey, {}));
  auto other = packed->survey;
  other.bytes += 1;
  CHECK_FALSE(check_unchanged(machine, machine.request, other, {}));
}

TEST_CASE("the directory of images is not packed into itself", "[conda]") {
  DirectoryMachine machine;
  machine.request.path = "/share";
  const auto packed = survey_path(machine, machine.request, {});
  REQUIRE_FALSE(packed);
  CHECK(packed.error().code == ErrorCode::usage);
}

TEST_CASE("attack: a list of the store's owner has a file below a link, which root would follow", "[conda]") {
  DirectoryMachine machine;
  const tree::Listed top{.path = "", .mode = S_IFDIR | 0755U}, directory{.path = "a", .mode = S_IFDIR | 0755U};
  const tree::Listed link{.path = "a", .target = "/etc/cron.d", .mode = S_IFLNK | 0777U};
  const tree::Listed file{.path = "a/x", .mode = S_IFREG | 0644U, .bytes = 1};
  const auto is_read = [&](std::vector<tree::Listed> entries) {
    const tree::Listing listing{.entries = std::move(entries)};
    machine.file("/share/images/c4.files", std::string(sys::WireWriter().put(listing).bytes()));
    return read_list(machine, machine.request, "/share/images/c4", ::geteuid())->has_value();
  };
  CHECK(is_read({top, directory, file}));
  CHECK_FALSE(is_read({top, link, file}));
  CHECK_FALSE(is_read({top, directory, link, file}));
  CHECK_FALSE(is_read({top, file}));
  CHECK_FALSE(is_read({directory, file}));
}

TEST_CASE("marks say what a copy is of", "[conda]") {
  const std::string hash(64, 'a');
  for (const auto& mark :
       {CopyMark{.source = "/s", .state = "1"}, CopyMark{.source = "/s", .state = "1", .sha256 = hash},
        CopyMark{.source = "/s", .state = "1", .sha256 = hash, .share_owner = 7},
        CopyMark{.source = "/s", .state = "1", .reader = 8}})
    CHECK(parse_mark(format_mark(mark)) == mark);
  CHECK(format_mark({.source = "/s", .state = "1", .sha256 = hash, .share_owner = 7, .reader = 8}) ==
        "/s\n1\n" + hash + "\nowner=7\nas=8\n");
  for (const auto* text : {"", "\n", "of another\n", "/s"})
    CHECK(parse_mark(text) == CopyMark{});
}

TEST_CASE("a path that is longer than a name may be has a directory of copies, too", "[conda]") {
  const std::string deep = "/" + std::string(200, 'a') + "/" + std::string(200, 'b');
  const auto directory = staged_directory("/stage", 0, deep + "/c4");
  CHECK(base_name(parent_path(directory)).size() <= 255);
  CHECK(directory != staged_directory("/stage", 0, "/x" + deep + "/c4"));
  CHECK(staged_source(staged_directory("/stage", 0, "/data/50% off/c4")) == "/data/50% off/c4");
}

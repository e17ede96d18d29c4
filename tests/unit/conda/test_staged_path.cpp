#include "conda/staged_path.hpp"

#include "link_machine.hpp"
#include "support/catch.hpp"
#include "sys/fs/sha256.hpp"
#include "sys/process/wire.hpp"
#include "tree/acl.hpp"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <set>
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

/// A copy of it by a list, which the store's owner may have written.
struct ListedMachine : DirectoryMachine {
  const std::string copy = "/stage/0/%share/c4/0123456789abcdef";
  StageAccess access = {0755, std::nullopt};

  [[nodiscard]] std::string real(const std::string& path) {
    return static_cast<sys::System&>(*this).files().root() + path;
  }
  [[nodiscard]] struct stat status(const std::string& path) {
    struct stat found{};
    CAPTURE(path);
    REQUIRE(::lstat(real(path).c_str(), &found) == 0);
    return found;
  }
  Result<void> copied(std::vector<tree::Listed> entries) {
    auto& system = static_cast<sys::System&>(*this);
    request.how.lock = [&] {
      return plan::HostLock::acquire(system.files(), "/state", {}, std::chrono::milliseconds(0));
    };
    Staging staging{.source = request.path};
    staging.files = tree::Listing{.uid = 60001, .gid = 60001, .entries = std::move(entries)};
    staging.copies.directory.path = parent_path(copy);
    staging.wanted = {.copy = base_name(copy), .access = access};
    staging.made.copies = true;
    return copy_path(system, request, staging, {}).map([](const auto&) {});
  }
  static tree::Listed listed(const std::string& path, unsigned mode, const std::string& content = {}) {
    return {.path = path,
            .mode = mode,
            .bytes = content.size(),
            .mtime = 1000,
            .sha256 = S_ISREG(mode) ? sys::sha256(content) : ""};
  }
  static tree::Listed link(const std::string& path, const std::string& target) {
    return {.path = path, .target = target, .mode = S_IFLNK | 0777U};
  }
};

/// What setfacl -d -m u:UID:rwx would set.
void set_default_acl(const std::string& path) {
  const sys::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(tree::write_acl(fd.get(), ACL_TYPE_DEFAULT, path, "u::rwx,u:60002:rwx,g::r-x,m::rwx,o::r-x"));
}

} // namespace

TEST_CASE("attack: a copy by a list gives another group the right to write", "[conda]") {
  if (::geteuid() != 0)
    return; // only root gives files to others
  ListedMachine machine;
  machine.file("/share/c4/models/one", "1");
  REQUIRE(
      machine.copied({ListedMachine::listed("", S_IFDIR | 02775U), ListedMachine::listed("models", S_IFDIR | 02775U),
                      ListedMachine::listed("models/one", S_IFREG | 0666U, "1")}));
  CHECK((machine.status(machine.copy).st_mode & 07777U) == 02755);
  CHECK((machine.status(machine.copy + "/models").st_mode & 07777U) == 02755);
  CHECK((machine.status(machine.copy + "/models/one").st_mode & 07777U) == 0644);
}

TEST_CASE("attack: a link of root's is moved out of a copy, and leads wherever its owner wants", "[conda]") {
  if (::geteuid() != 0)
    return; // only root gives files to others
  ListedMachine machine;
  REQUIRE(machine.copied({ListedMachine::listed("", S_IFDIR | 0755U), ListedMachine::link("l", "/etc/shadow")}));
  CHECK(machine.status(machine.copy + "/l").st_uid == 60001);
  CHECK(machine.status(machine.copy + "/l").st_gid == 60001);
}

TEST_CASE("attack: a directory of a list has the name of a link that an earlier list has left", "[conda]") {
  ListedMachine machine;
  machine.directory("/target");
  machine.directory(machine.copy);
  std::filesystem::create_symlink("/target/made", machine.real(machine.copy + "/a"));
  const auto made =
      machine.copied({ListedMachine::listed("", S_IFDIR | 0755U), ListedMachine::listed("a", S_IFDIR | 0755U)});
  REQUIRE_FALSE(made);
  CHECK(made.error().code == ErrorCode::conflict);
  CHECK_FALSE(std::filesystem::exists(machine.real("/target/made")));
}

TEST_CASE("a directory of copies inherits an ACL, which does not stop the copy", "[conda]") {
  if (::geteuid() != 0)
    return; // only root gives files to others
  ListedMachine machine;
  machine.access = {0750, 60005};
  machine.directory("/stage");
  set_default_acl(machine.real("/stage"));
  const auto made =
      machine.copied({ListedMachine::listed("", S_IFDIR | 0755U), ListedMachine::listed("one", S_IFREG | 0644U, "1")});
  CAPTURE(made ? "" : made.error().message);
  REQUIRE(made);
  CHECK((machine.status(parent_path(machine.copy)).st_mode & 07777U) == 0750);
  CHECK((machine.status(machine.copy).st_mode & 07777U) == 0755);
}

TEST_CASE("attack: images are used of whoever was the first to make their directory", "[conda]") {
  DirectoryMachine machine;
  const auto& survey = survey_path(machine, machine.request, {});
  REQUIRE(survey);
  REQUIRE(pack_path(machine, machine.request, *survey, {}));
  const auto image = survey->image + ".sqfs";
  const auto own = [&](const std::string& path, unsigned uid, unsigned mode) {
    auto& entry = machine.entry(path);
    entry.uid = uid;
    entry.mode = mode;
    if (entry.kind == sys::EntryKind::file)
      entry.content = *static_cast<sys::System&>(machine).files().read(path);
  };
  const auto is_used = [&] {
    const auto packed = survey_path(machine, machine.request, {});
    const auto packer = find_packer(machine, machine.request.store, {});
    REQUIRE(packed);
    CHECK(packed->exists == packer.has_value());
    const auto staging = plan_path_staging(machine, machine.request, *packed);
    CAPTURE(staging ? "" : staging.error().message);
    REQUIRE(staging);
    CHECK(staging->why_files.starts_with("/share/images belongs to user 60001") == !packed->exists);
    return packed->exists;
  };
  machine.user("first", 60001);
  for (const auto& path : {std::string("/share/images"), image, image + ".json"})
    own(path, 60001, path == "/share/images" ? 0755 : 0444);
  own("/share", 0, 01777);
  CHECK_FALSE(is_used());
  own("/share", 60002, 02775);
  CHECK_FALSE(is_used());
  SECTION("whose the directory above is") {
    own("/share", 60001, 02775);
    CHECK(is_used());
  }
  SECTION("nobody but root can make it") {
    own("/share", 0, 0755);
    CHECK(is_used());
  }
  SECTION("who reads the share for root makes it in a directory of root's, and in no other") {
    auto& reader = machine.request.how.copying.reader.emplace(machine.user("first"));
    reader.uid = reader.gid = ::geteuid(); // the survey reads real files
    machine.deny[""] = {"/share/images"};
    const auto is_used_by = [&](unsigned above) {
      own("/share", above, 02775);
      return survey_path(machine, machine.request, {})->exists;
    };
    CHECK_FALSE(is_used_by(0)); // another one reads for root
    machine.request.readers = {"first"};
    CHECK(is_used_by(0));
    CHECK_FALSE(is_used_by(60002));
  }
}

TEST_CASE("attack: the list of a private directory is read by all", "[conda]") {
  if (::geteuid() != 0)
    return; // only root gives files to others
  DirectoryMachine machine;
  const auto root = static_cast<sys::System&>(machine).files().root();
  machine.file("/share/private/large", "");
  const auto directory = root + "/share/private", large = directory + "/large";
  std::filesystem::resize_file(large, 65U << 20U);
  machine.request.path = "/share/private";
  machine.entry("/").mode = 0755; // all may get to the directory
  const auto set = [&](const std::string& path, mode_t mode) {
    REQUIRE(::lchown(path.c_str(), 77, 78) == 0);
    REQUIRE(::chmod(path.c_str(), mode) == 0);
  };
  const auto list = [&] {
    const auto packed = survey_path(machine, machine.request, {});
    REQUIRE(packed);
    REQUIRE(pack_path(machine, machine.request, *packed, {}));
    struct stat status{};
    REQUIRE(::lstat((root + packed->image + ".files").c_str(), &status) == 0);
    return status;
  };
  set(directory, 0700);
  set(large, 0600);
  CHECK((list().st_mode & 07777U) == 0400);
  set(directory, 0750);
  set(large, 0640);
  CHECK((list().st_mode & 07777U) == 0440);
  CHECK(list().st_gid == 78);
  set(directory, 0755);
  set(large, 0644);
  CHECK((list().st_mode & 07777U) == 0444);
  auto& above = machine.entry("/share");
  above.mode = 0750;
  above.gid = 79; // another group than the directory's
  CHECK((list().st_mode & 07777U) == 0440);
  set(large, 0640);
  CHECK((list().st_mode & 07777U) == 0400);
}

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
  const std::vector<std::string> paths{"/data/50% off/c4", "/p/%x/c4",  "/p%/x/c4", "/p%%/x/c4",
                                       "/p/%%x/c4",        "/p/%/x/c4", "/p/x/c4",  "/%/c4"};
  std::set<std::string> directories;
  for (const auto& path : paths) {
    CHECK(staged_source(staged_directory("/stage", 0, path)) == path);
    directories.insert(staged_directory("/stage", 0, path));
  }
  CHECK(directories.size() == paths.size());
  CHECK(staged_directory("/stage", 0, "/data/share/c4") == "/stage/0/%data%share/c4");
}

#include "tree/pack.hpp"

#include "given_tree.hpp"
#include "support/catch.hpp"
#include "support/content_of.hpp"
#include "sys/fs/sha256.hpp"
#include "tree/acl.hpp"
#include "tree/survey.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <random>

using namespace sharefs;
using namespace sharefs::test;
namespace fs = std::filesystem;

namespace {

/// What unsquashfs makes of the image.
std::string unpacked(const GivenTree& given, const std::string& image) {
  fs::remove_all(given.to);
  REQUIRE(std::system(("unsquashfs -q -n -d " + given.to + " " + image + " >/dev/null 2>&1").c_str()) == 0);
  return given.to;
}

tree::Packed pack(const tree::Packing& packing) {
  const auto packed = tree::pack(packing, {});
  CAPTURE(packed ? "" : packed.error().message);
  REQUIRE(packed);
  return *packed;
}

} // namespace

TEST_CASE("an image has the tree, its modes, times and links") {
  const GivenTree given;
  const std::string deep(120, 'd'), name(200, 'n');
  given.write("bin/python", "program");
  given.write("large", std::string((3U << 20U) + 17, 'x'));
  given.write("exactly 512", std::string(512, 'y'));
  given.write(deep + "/" + deep + "/" + name, "long path");
  given.write("empty", "");
  fs::create_directories(given.from + "/nothing in it");
  fs::create_symlink("python", given.from + "/bin/python3");
  fs::create_symlink(std::string(300, 't'), given.from + "/far");
  fs::create_hard_link(given.from + "/bin/python", given.from + "/bin/same");
  ::chmod((given.from + "/bin/python").c_str(), 0555);
  ::chmod((given.from + "/bin").c_str(), 02750);
  ::chmod(given.from.c_str(), 0711);
  for (const auto& one : fs::recursive_directory_iterator(given.from)) // squashfs has whole seconds
    set_time(one.path(), 1'000'000'000, 0);
  tree::Packing packing{.tree = {.path = given.from}, .file = given.from + ".sqfs", .made = 1234};
  packing.added = {{"bin/marker", "stays out of the way"}, {"bin/python", "is there"}, {"no/such", "directory"}};
  const auto packed = pack(packing);
  CHECK(packed.files == 9);
  const auto bytes = content_of(packing.file);
  CHECK(packed.bytes == bytes.size());
  CHECK(packed.sha256 == sys::sha256(bytes));
  CHECK((fs::status(packing.file).permissions() & fs::perms::all) == fs::perms(0400));
  const auto to = unpacked(given, packing.file);
  CHECK(content_of(to + "/bin/marker") == "stays out of the way");
  fs::remove(to + "/bin/marker");
  set_time(to + "/bin", 1'000'000'000, 0);
  CHECK(given.differences().empty());
  CHECK((status_of(to).st_mode & 07777U) == 0711);
  SECTION("the same tree gives an image that holds the same") { // in other blocks: mksquashfs 4.5.1 orders them by luck
    auto again = packing;
    again.file += ".again";
    CHECK(pack(again).files == packed.files);
    const auto anew = unpacked(given, again.file);
    CHECK(content_of(anew + "/bin/marker") == "stays out of the way");
    fs::remove(anew + "/bin/marker");
    set_time(anew + "/bin", 1'000'000'000, 0);
    CHECK(given.differences().empty());
  }
  SECTION("never where something lies already") {
    const auto refused = tree::pack(packing, {});
    REQUIRE(!refused);
    CHECK(content_of(packing.file) == bytes);
  }
}

TEST_CASE("files of an image are read near by where they are the same, and only there") {
  const GivenTree given;
  const GivenTree near;
  for (const auto* name : {"same", "other size", "other time"}) {
    given.write(name, "given");
    near.write(name, name == std::string("other size") ? "near by" : "near!");
    for (const auto& tree : {given.from, near.from})
      set_time(tree + "/" + name, 1'000'000'000, 0);
  }
  set_time(near.from + "/other time", 1'000'000'001, 0);
  given.write("not there", "given");
  tree::Packing packing{.tree = {.path = given.from}, .file = given.from + ".sqfs", .near = near.from};
  SECTION("by size and time") {
    pack(packing);
    CHECK(content_of(unpacked(given, packing.file) + "/same") == "near!"); // proves that it was read there
  }
  SECTION("of another tree of the same files") {
    const auto before = given.from + ".before";
    fs::create_directories(before);
    fs::create_hard_link(given.from + "/same", before + "/same");
    fs::copy_file(given.from + "/other size", before + "/other time");
    packing.near_of = before;
    pack(packing);
    CHECK(content_of(unpacked(given, packing.file) + "/same") == "near!");
  }
  SECTION("of another tree of other files") {
    const auto before = given.from + ".before";
    fs::create_directories(before);
    fs::copy_file(given.from + "/same", before + "/same");
    packing.near_of = before;
    pack(packing);
    CHECK(content_of(unpacked(given, packing.file) + "/same") == "given");
  }
  const auto to = unpacked(given, packing.file);
  for (const auto* name : {"other size", "other time", "not there"})
    CHECK(content_of(to + "/" + name) == "given");
}

TEST_CASE("what is not to be in an image is left out, by its first bytes") {
  const GivenTree given;
  given.write("a.pyc", "stale");
  given.write("b.pyc", "fresh");
  given.write("a.py", "source");
  tree::Packing packing{.tree = {.path = given.from}, .file = given.from + ".sqfs"};
  packing.leaves_out = [](const tree::Entry& file, std::string_view head, const tree::Packing::Find& find) {
    return file.path.ends_with(".pyc") && head == "stale" && find("a.py") != nullptr && find("nothing") == nullptr;
  };
  const auto packed = pack(packing);
  CHECK(packed.files == 2);
  CHECK(!fs::exists(unpacked(given, packing.file) + "/a.pyc"));
}

TEST_CASE("files of one size are compared with one another only where that does not take hours") {
  constexpr std::size_t k_large = 1'000'000;
  const GivenTree given;
  std::mt19937 random; // what cannot be compressed
  std::string large(k_large, '\0');
  std::ranges::generate(large, [&] { return static_cast<char>(random()); });
  given.write("one", large);
  given.write("other", large);
  CHECK(pack({.tree = {.path = given.from}, .file = given.from + ".few"}).bytes < 2 * k_large);
  for (int i = 0; i < 15'000; ++i)
    given.write(fmt::format("{}/{}", i / 1000, i), fmt::format("{:05}", i));
  const auto packed = pack({.tree = {.path = given.from}, .file = given.from + ".many"});
  CHECK(packed.files == 15'002);
  CHECK(packed.bytes > 2 * k_large);
}

TEST_CASE("an image that cannot be made is not left behind") {
  const GivenTree given;
  given.write("file", "content");
  tree::Packing packing{.tree = {.path = given.from}, .file = given.from + ".sqfs"};
  SECTION("a FIFO") {
    REQUIRE(::mkfifo((given.from + "/fifo").c_str(), 0600) == 0);
  }
  SECTION("another tree than was looked at") {
    packing.tree.inode = 1;
  }
  const auto packed = tree::pack(packing, {});
  REQUIRE(!packed);
  CHECK(!fs::exists(packing.file));
}

TEST_CASE("a file that cannot be read to its end is named, and not what mksquashfs says of its short input") {
  const GivenTree given;
  given.write("a", "small");
  given.write("large", std::string(3U << 20U, 'x'));
  tree::Packing packing{.tree = {.path = given.from}, .file = given.from + ".sqfs"};
  packing.leaves_out = [&](const tree::Entry& entry, std::string_view, const auto&) {
    if (entry.path == "a")
      fs::resize_file(given.from + "/large", 1U << 20U);
    return false;
  };
  const auto packed = tree::pack(packing, {});
  REQUIRE(!packed);
  CHECK(packed.error().message == given.from + "/large could not be read as it was seen, or changes");
  CHECK(!fs::exists(packing.file));
}

TEST_CASE("what its one owner and group would open to others, or close to somebody, gets no image") {
  if (::geteuid() != 0)
    return; // only root gives files to others
  const GivenTree given;
  given.write("directory/file", "content");
  const auto directory = given.from + "/directory", file = directory + "/file";
  ::chmod(directory.c_str(), 0755);
  REQUIRE(::lchown(given.from.c_str(), 77, 78) == 0);
  REQUIRE(::lchown(directory.c_str(), 77, 78) == 0);
  struct Case {
    uid_t uid;
    gid_t gid;
    mode_t mode;
    bool packed;
  };
  const auto one = GENERATE(Case{77, 78, 0600, true}, Case{1234, 78, 0644, true}, Case{1234, 78, 0440, true},
                            Case{1234, 5678, 0644, true}, Case{77, 5678, 0744, true}, Case{77, 5678, 0600, true},
                            Case{77, 5678, 0640, false}, Case{77, 5678, 0604, false}, Case{1234, 78, 0600, false},
                            Case{1234, 78, 0044, false}, Case{1234, 5678, 0400, false});
  CAPTURE(one.uid, one.gid, one.mode);
  const auto of = GENERATE_REF(file, directory);
  REQUIRE(::lchown(of.c_str(), one.uid, one.gid) == 0);
  ::chmod(of.c_str(), one.mode);
  const tree::Packing packing{.tree = {.path = given.from}, .file = given.from + ".sqfs"};
  const auto packed = tree::pack(packing, {});
  REQUIRE(packed.has_value() == one.packed);
  CHECK(tree::list_contents({.path = given.from}, {}).has_value() == one.packed);
  if (!packed)
    CHECK(packed.error().message.starts_with(fmt::format("{} belongs to {}:{} with ", of, one.uid, one.gid)));
}

TEST_CASE("where an ACL narrows the group, an image has what it leaves") {
  const GivenTree given;
  given.write("file", "content");
  ::chmod((given.from + "/file").c_str(), 0640);
  ::chmod(given.from.c_str(), 0750);
  const auto narrow = [&](const std::string& path, const std::string& acl) {
    const sys::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(tree::write_acl(fd.get(), ACL_TYPE_ACCESS, path, acl));
  };
  mode_t mode = 0640;
  SECTION("others are named, and the group keeps its own") {
    narrow(given.from + "/file", "u::rw-,u:1234:r--,g::r--,m::r--,o::---");
  }
  SECTION("the group has nothing") {
    narrow(given.from + "/file", "u::rw-,u:1234:r--,g::---,m::r--,o::---");
    narrow(given.from, "u::rwx,u:1234:r-x,g::--x,m::r-x,o::---");
    mode = 0600;
  }
  const tree::Packing packing{.tree = {.path = given.from}, .file = given.from + ".sqfs"};
  pack(packing);
  const auto to = unpacked(given, packing.file);
  CHECK((status_of(to + "/file").st_mode & 07777U) == mode);
  CHECK((status_of(to).st_mode & 07777U) == (mode == 0640 ? 0750U : 0710U));
  CHECK((status_of(packing.file).st_mode & 07777U) == (mode == 0640 ? 0440U : 0400U));
}

TEST_CASE("where an ACL keeps somebody out there is no image, which has no ACLs") {
  const GivenTree given;
  given.write("file", "content");
  const auto file = given.from + "/file";
  ::chmod(file.c_str(), 0644);
  ::chmod(given.from.c_str(), 0755);
  struct Case {
    bool of_tree;
    const char* acl;
    bool packed;
  };
  const auto one = GENERATE(Case{false, "u::rw-,u:1234:---,g::r--,m::r--,o::r--", false},
                            Case{false, "u::rw-,g::r--,g:1234:-w-,m::rw-,o::r--", false},
                            Case{false, "u::rw-,u:1234:r--,g::r--,m::---,o::r--", false},
                            Case{false, "u::rw-,u:1234:---,g::r--,m::r--,o::---", false},
                            Case{false, "u::rw-,u:1234:rw-,g::r--,g:77:r--,m::rw-,o::r--", true},
                            Case{false, "u::rwx,u:1234:r--,g::r-x,m::r-x,o::r-x", true},
                            Case{true, "u::rwx,u:1234:r--,g::r-x,m::r-x,o::r-x", false},
                            Case{true, "u::rwx,u:1234:rwx,g::r-x,m::rwx,o::r-x", true});
  CAPTURE(one.of_tree, one.acl);
  const auto& path = one.of_tree ? given.from : file;
  {
    const sys::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(tree::write_acl(fd.get(), ACL_TYPE_ACCESS, path, one.acl));
  }
  const auto packed = tree::pack({.tree = {.path = given.from}, .file = given.from + ".sqfs"}, {});
  REQUIRE(packed.has_value() == one.packed);
  if (!packed) {
    CHECK(packed.error().code == ErrorCode::unsupported);
    CHECK(packed.error().message == path + " has an ACL that keeps somebody out, and an image has no ACLs");
  }
}

TEST_CASE("nobody reads an image who may not read all that is in it") {
  const GivenTree given;
  given.write("directory/file", "content");
  const auto directory = given.from + "/directory", file = directory + "/file";
  for (const auto& path : {given.from, directory})
    ::chmod(path.c_str(), 0755);
  ::chmod(file.c_str(), 0644);
  std::filesystem::create_symlink("directory", given.from + "/link");
  mode_t mode = 0;
  SECTION("all may") {
    mode = 0444;
  }
  SECTION("a file that is its owner's only") {
    ::chmod(file.c_str(), 0600);
    mode = 0400;
  }
  SECTION("a file of the group") {
    ::chmod(file.c_str(), 0640);
    mode = 0440;
  }
  SECTION("a directory that only its owner can enter") {
    ::chmod(directory.c_str(), 0744);
    mode = 0400;
  }
  SECTION("a file of another group") {
    if (::geteuid() != 0)
      return; // only root gives files to others
    ::chmod(file.c_str(), 0600);
    REQUIRE(::lchown(file.c_str(), 0, 5678) == 0);
    mode = 0400;
  }
  const tree::Packing packing{.tree = {.path = given.from}, .file = given.from + ".sqfs"};
  pack(packing);
  CHECK((status_of(packing.file).st_mode & 07777U) == mode);
}

TEST_CASE("attack: a private file takes the name of a listed one") {
  const GivenTree given;
  given.write("a", "small");
  given.write("large", std::string(3U << 20U, 'x'));
  given.directory.write("private", std::string(3U << 20U, 'p'));
  ::chmod((given.directory / "private").c_str(), 0600);
  tree::Packing packing{.tree = {.path = given.from}, .file = given.from + ".sqfs"};
  packing.leaves_out = [&](const tree::Entry& entry, std::string_view, const auto&) {
    if (entry.path == "a")
      fs::rename(given.directory / "private", given.from + "/large");
    return false;
  };
  const auto packed = tree::pack(packing, {});
  REQUIRE(!packed);
  CHECK(packed.error().code == ErrorCode::conflict);
  CHECK(packed.error().message == given.from + "/large could not be read as it was seen, or changes");
}

TEST_CASE("an image of another group than its tree is for this group only where all others read the tree") {
  if (::geteuid() != 0)
    return; // only root gives files to others
  const GivenTree given;
  given.write("file", "content");
  const auto file = given.from + "/file";
  for (const auto& path : {given.from, file})
    REQUIRE(::lchown(path.c_str(), 77, 7002) == 0);
  tree::Packing packing{.tree = {.path = given.from}, .file = given.from + ".sqfs", .most = 0440, .gid = 7001};
  mode_t mode = 0400;
  SECTION("only its own group reads it") {
    ::chmod(file.c_str(), 0640);
    ::chmod(given.from.c_str(), 0750);
  }
  SECTION("only its own group enters it") {
    ::chmod(file.c_str(), 0644);
    ::chmod(given.from.c_str(), 0754);
  }
  SECTION("all read it") {
    ::chmod(file.c_str(), 0644);
    ::chmod(given.from.c_str(), 0755);
    mode = 0440;
  }
  SECTION("its own group reads it, and that is the image's") {
    ::chmod(file.c_str(), 0640);
    ::chmod(given.from.c_str(), 0750);
    packing.gid = 7002;
    mode = 0440;
  }
  SECTION("all but a group") {
    ::chmod(file.c_str(), 0644);
    ::chmod(given.from.c_str(), 0755);
    packing.most = 0404;
    mode = 0404;
  }
  pack(packing);
  CHECK((status_of(packing.file).st_mode & 07777U) == mode);
  CHECK(status_of(packing.file).st_gid == *packing.gid);
}

TEST_CASE("an exception ends mksquashfs, which is not waited for with its input open", "[waits]") {
  const GivenTree given;
  given.write("a", "small");
  tree::Packing packing{.tree = {.path = given.from}, .file = given.from + ".sqfs"};
  packing.leaves_out = [](const tree::Entry&, std::string_view, const auto&) -> bool { throw std::bad_alloc(); };
  const auto packed = tree::pack(packing, {.deadline = std::chrono::seconds(3)});
  REQUIRE(!packed);
  CHECK(packed.error().code != ErrorCode::timeout);
}

TEST_CASE("attack: a private file takes the name of a listed one, whose checksum is not written yet", "[waits]") {
  const TemporaryDirectory directory;
  const auto from = directory / "from";
  directory.write("from/a", "");
  fs::resize_file(from + "/a", 1U << 30U); // reading its zeros takes longer than a progress report
  directory.write("from/z", "public");
  directory.write("private", "secret");
  ::chmod((directory / "private").c_str(), 0600);
  const auto listed = tree::list_contents({from}, {}, [&](const tree::Progress& progress) {
    if (progress.bytes > 0 && fs::exists(directory / "private"))
      fs::rename(directory / "private", from + "/z");
  });
  REQUIRE_FALSE(listed);
  CHECK(listed.error().code == ErrorCode::conflict);
  CHECK(listed.error().message == from + "/z changed while it was read");
}

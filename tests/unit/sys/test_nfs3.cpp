// The bytes of NFS version 3, by RFC 1813; and replies that are cut off, too long or nonsense.
#include "sys/nfs/nfs3.hpp"

#include "fake_rpc_server.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::sys;
using test::Xdr;

namespace {

using Read = Answer<Nfs3Reply> (*)(std::string_view);

struct Fattr {
  std::uint32_t type = 1, mode = 0100644, nanoseconds = 999'999'999;
  std::uint32_t size_high = 1;
  [[nodiscard]] Xdr bytes() const {
    Xdr all;
    all.word(type).word(mode).word(2).word(1000).word(3000).word(size_high).word(5); // links, owner, group, size
    all.word(0).word(8).word(0).word(0).word(0).word(77).word(9).word(10);           // used, rdev, fsid, fileid
    return all.word(1).word(2).word(30).word(nanoseconds).word(50).word(6);          // atime, mtime, ctime
  }
};

std::string change(const Fattr& after = {}) { // wcc_data
  return Xdr().word(1).word(0).word(5).word(1).word(2).word(3).word(4).word(1).raw(after.bytes().bytes()).bytes();
}

std::string getattr(const Fattr& found = {}) {
  return Xdr().word(0).raw(found.bytes().bytes()).bytes();
}
std::string created() {
  return Xdr().word(0).word(1).text("handle").word(1).raw(Fattr().bytes().bytes()).raw(change()).bytes();
}
std::string written() {
  return Xdr().word(0).raw(change()).word(4096).word(2).word(8).word(9).bytes();
}
std::string bytes_read(std::uint32_t count = 5) {
  return Xdr().word(0).word(1).raw(Fattr().bytes().bytes()).word(count).word(1).text("hello").bytes();
}
/// Entries: tag, right.
std::string acl(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& entries, std::uint32_t lists = 1) {
  Xdr all;
  all.word(0).word(1).raw(Fattr().bytes().bytes()).word(lists);
  all.word(static_cast<std::uint32_t>(entries.size())).word(static_cast<std::uint32_t>(entries.size()));
  for (const auto& [tag, right] : entries)
    all.word(tag).word(0).word(right);
  return all.word(0).word(0).bytes();
}
std::string attributes_set() {
  return Xdr().word(0).raw(change()).bytes();
}

void check_attributes(const Answer<Nfs3Reply>& reply) {
  REQUIRE(reply);
  CHECK(reply->status == 0);
  REQUIRE(reply->attributes);
  const auto& found = *reply->attributes;
  CHECK(found.st_mode == (S_IFREG | 0644U));
  CHECK((found.st_nlink == 2 && found.st_uid == 1000 && found.st_gid == 3000));
  CHECK(found.st_size == (1LL << 32) + 5);
  CHECK(found.st_ino == (9ULL << 32U) + 10);
  CHECK((found.st_mtim.tv_sec == 30 && found.st_mtim.tv_nsec == 999'999'999));
  CHECK((found.st_ctim.tv_sec == 50 && found.st_ctim.tv_nsec == 6));
}

} // namespace

TEST_CASE("the arguments of NFS version 3") {
  CHECK(nfs3_getattr("abcde") == Xdr().text("abcde").bytes());
  CHECK(nfs3_create("dir", "name", S_IFREG | 0640) ==
        Xdr().text("dir").text("name").word(1).word(1).word(0640).word(0).word(0).word(0).word(0).word(0).bytes());
  CHECK(nfs3_write("file", (1ULL << 32U) + 7, "hello") ==
        Xdr().text("file").word(1).word(7).word(5).word(2).text("hello").bytes());
  CHECK(nfs3_read("file", (1ULL << 32U) + 7, 5) == Xdr().text("file").word(1).word(7).word(5).bytes());
  CHECK(nfs3_set_times("file", {1, 2}, {0xFFFFFFFFLL, 999'999'999}) == Xdr()
                                                                           .text("file")
                                                                           .word(0)
                                                                           .word(0)
                                                                           .word(0)
                                                                           .word(0)
                                                                           .word(2)
                                                                           .word(1)
                                                                           .word(2)
                                                                           .word(2)
                                                                           .word(0xFFFFFFFFU)
                                                                           .word(999'999'999)
                                                                           .word(0)
                                                                           .bytes());
  CHECK((is_nfs3_time({0, 0}) && is_nfs3_time({0xFFFFFFFFLL, 0})));
  CHECK_FALSE((is_nfs3_time({-1, 0}) || is_nfs3_time({0x100000000LL, 0})));
}

TEST_CASE("the replies of NFS version 3") {
  check_attributes(read_nfs3_getattr(getattr()));
  check_attributes(read_nfs3_create(created()));
  CHECK(read_nfs3_create(created())->handle == "handle");
  check_attributes(read_nfs3_write(written()));
  CHECK((read_nfs3_write(written())->count == 4096 && read_nfs3_write(written())->synced));
  check_attributes(read_nfs3_setattr(attributes_set()));
  check_attributes(read_nfs3_read(bytes_read()));
  CHECK(read_nfs3_read(bytes_read())->content == "hello");

  check_attributes(read_nfs3_getacl(acl({{1, 6}, {4, 4}, {32, 4}})));

  // What a server need not send
  const auto bare = read_nfs3_create(Xdr().word(0).word(0).word(0).word(0).word(0).bytes());
  REQUIRE(bare);
  CHECK((bare->handle.empty() && !bare->attributes));
  const auto unstable = read_nfs3_write(Xdr().word(0).word(0).word(0).word(1).word(0).word(8).word(9).bytes());
  REQUIRE(unstable);
  CHECK((unstable->count == 1 && !unstable->synced));

  // Failures, with and without what they carry
  for (const Read read : {read_nfs3_create, read_nfs3_write, read_nfs3_setattr}) {
    for (const auto& carried : {Xdr().word(0).word(0).bytes(), change()}) {
      const auto refused = read(Xdr().word(13).raw(carried).bytes());
      REQUIRE(refused);
      CHECK(refused->status == 13);
      CHECK(refused->handle.empty());
    }
  }
  CHECK(read_nfs3_getattr(Xdr().word(70).bytes())->status == 70);
  CHECK(read_nfs3_read(Xdr().word(13).word(0).bytes())->status == 13);
  CHECK(read_nfs3_getacl(Xdr().word(13).word(0).bytes())->status == 13);
}

TEST_CASE("an ACL that says no more than the mode, and all others") {
  const auto has_acl = [](const std::vector<std::pair<std::uint32_t, std::uint32_t>>& entries,
                          std::uint32_t lists = 1) {
    const auto reply = read_nfs3_getacl(acl(entries, lists));
    return reply && reply->has_acl;
  };
  CHECK_FALSE(has_acl({{1, 6}, {4, 4}, {32, 4}}));
  CHECK_FALSE(has_acl({{1, 6}, {4, 4}, {16, 4}, {32, 4}})); // as Linux has it for others
  CHECK(has_acl({{1, 6}, {4, 6}, {16, 4}, {32, 4}}));       // a mask that takes something away
  CHECK(has_acl({{1, 6}, {2, 4}, {4, 4}, {16, 4}, {32, 4}}));
  CHECK(has_acl({{1, 6}, {4, 4}, {8, 7}, {32, 4}}));
  CHECK(has_acl({{1, 6}, {4, 4}, {4, 4}, {32, 4}}));
  CHECK(has_acl({{1, 6}, {32, 4}}));
  CHECK(has_acl({}));
  CHECK(has_acl({{1, 6}, {4, 4}, {32, 4}}, 4)); // other lists than were asked for
}

TEST_CASE("a reply of NFS version 3 that is cut off anywhere cannot be read") {
  const std::pair<Read, std::string> sound[]{{read_nfs3_getattr, getattr()},
                                             {read_nfs3_create, created()},
                                             {read_nfs3_write, written()},
                                             {read_nfs3_read, bytes_read()},
                                             {read_nfs3_setattr, attributes_set()}};
  // The default ACL, which was not asked for, need not come.
  const auto whole = acl({{1, 6}, {4, 4}, {32, 4}});
  for (std::size_t size = 0; size < whole.size() - 8; ++size)
    CHECK_FALSE(read_nfs3_getacl(std::string_view(whole).substr(0, size)));
  for (const auto& [read, bytes] : sound)
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      CAPTURE(size, bytes.size());
      CHECK_FALSE(read(std::string_view(bytes).substr(0, size)));
    }
}

TEST_CASE("nonsense in a reply of NFS version 3 cannot be read") {
  for (const std::uint32_t length : {65U, 0x7FFFFFFFU, 0xFFFFFFFDU, 0xFFFFFFFFU}) {
    CHECK_FALSE(read_nfs3_create(Xdr().word(0).word(1).word(length).bytes()));
    CHECK_FALSE(read_nfs3_create(Xdr().word(0).word(1).word(length).bytes() + std::string(5000, 'h')));
  }
  CHECK_FALSE(read_nfs3_create(
      Xdr().word(0).word(1).text(std::string(68, 'h')).word(0).word(0).word(0).bytes())); // a long handle
  CHECK_FALSE(read_nfs3_create(Xdr().word(0).word(2).word(0).word(0).word(0).bytes()));   // neither yes nor no
  for (const std::uint32_t count : {0U, 4U, 6U, 0xFFFFFFFFU})                             // other than what comes
    CHECK_FALSE(read_nfs3_read(bytes_read(count)));
  const auto read = [](std::uint32_t size, std::size_t sent) {
    return read_nfs3_read(Xdr().word(0).word(0).word(size).word(0).word(size).bytes() + std::string(sent, 'x'));
  };
  CHECK(read(k_nfs3_most_bytes, k_nfs3_most_bytes));
  CHECK_FALSE(read(k_nfs3_most_bytes + 4, k_nfs3_most_bytes + 4)); // more than was asked for
  CHECK_FALSE(read(0xFFFFFFFFU, 100));
  CHECK_FALSE(read_nfs3_getacl(Xdr().word(0).word(0).word(1).word(3).word(0xFFFFFFFFU).word(1).bytes()));
  CHECK_FALSE(read_nfs3_getattr(getattr({.type = 0})));
  CHECK_FALSE(read_nfs3_getattr(getattr({.type = 8})));
  CHECK_FALSE(read_nfs3_getattr(getattr({.nanoseconds = 1'000'000'000})));
  CHECK_FALSE(read_nfs3_getattr(getattr({.size_high = 0x80000000U})));
  CHECK(read_nfs3_getattr(getattr({.mode = 0xFFFFFFFFU}))->attributes->st_mode == (S_IFREG | 07777U));
}

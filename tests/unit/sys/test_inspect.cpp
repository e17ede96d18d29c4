#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "sys/fs/path_probe.hpp"

#include <cerrno>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

PathFact look_at(const PathQuery& query, std::optional<User> as = {}) {
  const auto facts = inspect_paths({{query}, 3000ms, as});
  REQUIRE(facts);
  REQUIRE(facts->size() == 1);
  CHECK(facts->front().path == query.path);
  return facts->front();
}

} // namespace

TEST_CASE("kinds of paths") {
  const test::TemporaryDirectory directory;
  directory.write("file", "12345");
  ::chmod((directory / "file").c_str(), 02640);
  fs::create_symlink("file", directory / "link");
  fs::create_symlink("none", directory / "dangling");
  REQUIRE(::mkfifo((directory / "fifo").c_str(), 0600) == 0);
  struct Row {
    const char* name;
    bool follow;
    PathKind kind;
    const char* target;
  };
  const Row row = GENERATE(Row{"", false, PathKind::directory, ""}, Row{"file", false, PathKind::file, ""},
                           Row{"link", false, PathKind::symlink, "file"}, Row{"link", true, PathKind::file, ""},
                           Row{"dangling", false, PathKind::symlink, "none"},
                           Row{"dangling", true, PathKind::missing, ""}, Row{"fifo", false, PathKind::other, ""},
                           Row{"none", false, PathKind::missing, ""}, Row{"file/x", false, PathKind::missing, ""});
  INFO(row.name);
  PathQuery query{directory / row.name, row.follow, true, 100};
  const PathFact fact = look_at(query);
  CHECK(fact.kind == row.kind);
  CHECK(fact.link_target == row.target);
  if (row.kind == PathKind::file) {
    CHECK(fact.content == "12345");
    CHECK(fact.mode == 02640);
    CHECK(fact.size == 5);
    CHECK(fact.uid == ::geteuid());
    CHECK(fact.links == 1);
    CHECK(fact.inode != 0);
    CHECK(fact.mtime > 1'600'000'000);
  }
  CHECK((fact.error_number == 0) == (row.kind != PathKind::missing));
}

TEST_CASE("listing is sorted and only done when asked for") {
  const test::TemporaryDirectory directory;
  for (const char* name : {"b", "a", ".c", "weird \n name"})
    directory.write(name, "");
  CHECK(look_at({directory.path(), false, true, 0}).entries ==
        std::vector<std::string>{".c", "a", "b", "weird \n name"});
  CHECK(look_at({directory.path(), false, false, 0}).entries.empty());
  fs::create_directory_symlink(directory.path(), directory / "link");
  CHECK(look_at({directory / "link", false, true, 0}).entries.empty());
  CHECK(look_at({directory / "link", true, true, 0}).entries.size() == 5);
}

TEST_CASE("content is bounded") {
  const test::TemporaryDirectory directory;
  directory.write("file", std::string(200'000, 'x'));
  CHECK(look_at({directory / "file", false, false, 0}).content.empty());
  CHECK(look_at({directory / "file", false, false, 10}).content == "xxxxxxxxxx");
  CHECK(look_at({directory / "file", false, false, 1U << 20U}).content.size() == 200'000);
  CHECK_FALSE(look_at({"/proc/self/mountinfo", false, false, 100}).content.empty());
}

TEST_CASE("many paths, in order") {
  const test::TemporaryDirectory directory;
  InspectRequest request;
  for (int i = 0; i < 500; ++i) {
    directory.write(std::to_string(i), std::string(1000, static_cast<char>('a' + i % 26)));
    request.queries.push_back({directory / std::to_string(i), false, false, 2000});
  }
  const auto facts = inspect_paths(request);
  REQUIRE(facts);
  REQUIRE(facts->size() == 500);
  bool right = true;
  for (std::size_t i = 0; i < 500; ++i)
    right = right && (*facts)[i].path == request.queries[i].path &&
            (*facts)[i].content[0] == static_cast<char>('a' + i % 26);
  CHECK(right);
  CHECK(inspect_paths({})->empty());
}

TEST_CASE("what a user may not see is unknown, with the reason") {
  const test::TemporaryDirectory directory;
  directory.write("secret/file", "x");
  fs::permissions(directory.path(), fs::perms(0755));
  fs::permissions(directory / "secret", fs::perms(0700));
  const User nobody{"nobody", 65534, 65534, {65534}, "/nonexistent"};
  if (::geteuid() != 0) {
    const auto facts = inspect_paths({{{directory.path(), false, false, 0}}, 1000ms, nobody});
    REQUIRE_FALSE(facts);
    CHECK(facts.error().code == ErrorCode::permission);
    return;
  }
  const PathFact hidden = look_at({directory / "secret/file", false, false, 0}, nobody);
  CHECK(hidden.kind == PathKind::unknown);
  CHECK(hidden.error_number == EACCES);
  const PathFact closed = look_at({directory / "secret", false, true, 0}, nobody);
  CHECK(closed.kind == PathKind::directory);
  CHECK(closed.error_number == EACCES);
  CHECK(closed.entries.empty());
}

#include "given_tree.hpp"
#include "support/users.hpp"
#include "tree/survey.hpp"

using namespace sharefs;
using namespace sharefs::test;
namespace fs = std::filesystem;

TEST_CASE("a tree is measured: names, bytes, newest use") {
  const GivenTree given;
  given.many(20);
  given.write("new", std::string(100'000, 'x'));
  fs::create_hard_link(given.from + "/new", given.from + "/0/same");
  fs::create_symlink("/nowhere", given.from + "/link");
  std::vector<std::string> paths{given.from};
  for (const auto& one : fs::recursive_directory_iterator(given.from))
    paths.push_back(one.path().string());
  for (const auto& path : paths)
    set_time(path, 1'000'000'000, 0);
  set_time(given.from + "/1/11", 1'234'567'890, 0);
  const auto measured = tree::measure({given.from}, {});
  REQUIRE(measured);
  CHECK(measured->files == 23);
  CHECK(measured->bytes == 10 * 9 + 10 * 10 + 200'000);
  CHECK(measured->allocated < 200'000 + 20 * 4096); // the second name takes nothing
  CHECK(measured->used == 1'234'567'890);
  CHECK(*tree::measure({given.from}, {}) == *measured); // to be measured is no use
}

TEST_CASE("where this user may not look is left out") {
  if (::geteuid() != 0)
    return;
  const GivenTree given;
  given.many(20);
  ::chmod(given.directory.path().c_str(), 0755);
  ::chmod((given.from + "/1").c_str(), 0700);
  const auto measured = tree::measure({given.from}, {.as = nobody()});
  REQUIRE(measured);
  CHECK(measured->files == 10);
}

TEST_CASE("what differs is named, or the other tests would prove nothing") {
  const GivenTree given;
  given.many(40);
  fs::create_symlink("a", given.from + "/link");
  (void)given.copy();
  CHECK(contents_of(given.from).size() == 40 + 4 + 1);
  CHECK(given.differences().empty());

  fs::remove(given.to + "/0/1");
  given.directory.write("to/0/1x", "more");
  given.directory.write("to/1/11", "CONTENT 11");
  fs::remove(given.to + "/link");
  fs::create_symlink("b", given.to + "/link");
  ::chmod((given.to + "/2/22").c_str(), 0600);
  set_time(given.to + "/2/23", 1, 1);
  fs::remove(given.to + "/3/33");
  fs::create_directory(given.to + "/3/33");
  std::vector<std::string> found;
  for (const auto& difference : given.differences())
    if (!difference.ends_with("has another time") || difference.starts_with("2/23"))
      found.push_back(difference);
  CHECK(found == std::vector<std::string>{"0/1 is missing", "1/11 has another content", "2/22 has another mode",
                                          "2/23 has another time", "3/33 has another content",
                                          "link has another content", "0/1x is not in the original"});
}

TEST_CASE("a survey leaves out directories of a name, and sees all else") {
  const GivenTree given;
  given.many(20);
  const auto fingerprint = [&](const std::string& without) {
    return tree::survey({given.from}, {}, {}, false, without)->fingerprint;
  };
  const auto all = fingerprint(""), some = fingerprint("__pycache__");
  CHECK(all == some);
  fs::create_directories(given.from + "/1/__pycache__/deep");
  given.write("1/__pycache__/deep/x.pyc", "compiled");
  CHECK(fingerprint("__pycache__") == some);
  CHECK(fingerprint("") != all);
  given.write("1/__pycache__x", "");
  CHECK(fingerprint("__pycache__") != some);
}

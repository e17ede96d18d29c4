#include "tree/reader.hpp"

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <sys/stat.h>

using namespace sharefs;
using namespace sharefs::tree;

namespace {

struct TreeOfFiles {
  test::TemporaryDirectory root;
  sys::ProgressCounters counters = *sys::ProgressCounters::make();
  [[nodiscard]] std::string at(const std::string& path) const { return root.path() + path; }
  Result<Reader> open(const std::string& path) { return Reader::open(sys::Files(root.path()), path, counters); }
};

} // namespace

TEST_CASE("a tree is listed by path, and no link is followed", "[tree]") {
  TreeOfFiles tree;
  std::filesystem::create_directories(tree.at("/t/a/b"));
  tree.root.write("t/a/b/file", "12345");
  std::filesystem::create_symlink("/t/a", tree.at("/t/link"));
  REQUIRE(::mkfifo(tree.at("/t/fifo").c_str(), 0600) == 0);
  const auto reader = tree.open("/t");
  REQUIRE(reader);
  std::vector<std::string> paths;
  const auto entries = reader->list();
  REQUIRE(entries);
  for (const auto& entry : *entries)
    paths.push_back(entry.path + entry.target);
  CHECK(paths == std::vector<std::string>{"a", "a/b", "a/b/file", "fifo", "link/t/a"});
  CHECK(reader->list(5));
  CHECK(reader->list(4).error().message ==
        "it holds more than 4 files, or names and links of more than 512 MiB"); // hard links cost nothing
  std::string content;
  CHECK((reader->read("a/b/file", 3, content) == 0 && content == "123"));
  CHECK((reader->read("a/b/file", 99, content) == 0 && content == "12345"));
  CHECK(reader->read("link/b/file", 99, content) == ELOOP);
  CHECK(reader->read("../t/a/b/file", 99, content) == EXDEV);
  CHECK(reader->read("fifo", 99, content) == EINVAL);
  CHECK(reader->read("missing", 99, content) == ENOENT);
}

TEST_CASE("the tree itself may be named by a link, but has to be a directory", "[tree]") {
  TreeOfFiles tree;
  std::filesystem::create_directories(tree.at("/t/a"));
  tree.root.write("file", "");
  std::filesystem::create_symlink("/t", tree.at("/link"));
  CHECK(tree.open("/link")->list()->size() == 1);
  CHECK(tree.open("/file").error().code == ErrorCode::not_found);
  CHECK(tree.open("/missing").error().code == ErrorCode::not_found);
}

// ExchangeForLink: a directory becomes a link, and comes back, whatever cut it off.
#include "plan/apply.hpp"
#include "support/catch.hpp"
#include "willing_machine.hpp"

#include <atomic>
#include <fcntl.h>
#include <thread>

using namespace sharefs;
using namespace sharefs::plan;
namespace fs = std::filesystem;

namespace {

struct Scene {
  test::TemporaryRoot root;
  test::ScriptedSystem system{root.path(), test::willing_machine()};
  ExchangeForLink action{"/envs/llm", "/envs/llm.kept", "/store/llm", false, 0, 0, std::nullopt};

  Scene() {
    fs::create_directories(at("/envs/llm/bin"));
    test::put(at("/envs/llm/file"), "mine");
    struct stat status{};
    ::stat(at("/envs/llm").c_str(), &status);
    action.inode = status.st_ino;
  }
  [[nodiscard]] std::string at(const std::string& path) const { return root.path() + path; }
  std::string apply(const Action& what) {
    const auto outcome = apply_action(what, system);
    last = outcome ? Error{} : outcome.error();
    return outcome ? to_string(*outcome) : to_string(outcome.error().code);
  }
  [[nodiscard]] bool is_before() const {
    return fs::is_directory(fs::symlink_status(at("/envs/llm"))) && test::content_of(at("/envs/llm/file")) == "mine" &&
           fs::symlink_status(at("/envs/llm.kept")).type() == fs::file_type::not_found;
  }
  [[nodiscard]] bool is_after() const {
    return fs::is_symlink(at("/envs/llm")) && fs::read_symlink(at("/envs/llm")) == "/store/llm" &&
           test::content_of(at("/envs/llm.kept/file")) == "mine";
  }
  Error last;
};

} // namespace

TEST_CASE("ExchangeForLink keeps the directory, and its inverse brings it back") {
  Scene scene;
  CHECK(scene.apply(scene.action) == "done");
  CHECK(scene.is_after());
  CHECK(scene.apply(scene.action) == "unchanged");
  const auto inverse = *invert(scene.action);
  CHECK(scene.apply(inverse) == "done");
  CHECK(scene.is_before());
  CHECK(scene.apply(inverse) == "unchanged");
  CHECK(*invert(inverse) == Action(scene.action));
}

TEST_CASE("ExchangeForLink works between directories") {
  Scene scene;
  fs::create_directory(scene.at("/generations"));
  scene.action.to = "/generations/0001";
  CHECK(scene.apply(scene.action) == "done");
  CHECK(fs::read_symlink(scene.at("/envs/llm")) == "/store/llm");
  CHECK(test::content_of(scene.at("/generations/0001/file")) == "mine");
  CHECK(scene.apply(*invert(scene.action)) == "done");
  CHECK(test::content_of(scene.at("/envs/llm/file")) == "mine");
  scene.action.to = "/nowhere/0001";
  CHECK(scene.apply(scene.action) == "not_found");
  CHECK(scene.is_before());
}

TEST_CASE("ExchangeForLink finishes what was cut off, and its inverse takes it back") {
  for (const bool finish : {true, false}) {
    Scene link_made, name_lost; // between symlink and exchange; between rename and symlink
    fs::create_symlink("/store/llm", link_made.at("/envs/llm.kept"));
    fs::rename(name_lost.at("/envs/llm"), name_lost.at("/envs/llm.kept"));
    for (auto* scene : {&link_made, &name_lost}) {
      CHECK(scene->apply(finish ? Action(scene->action) : *invert(scene->action)) == "done");
      CHECK((finish ? scene->is_after() : scene->is_before()));
    }
  }
}

TEST_CASE("ExchangeForLink leaves what is not as planned") {
  Scene scene;
  SECTION("another directory") {
    ++scene.action.inode;
    CHECK(scene.apply(scene.action) == "conflict");
    CHECK(scene.is_before());
  }
  SECTION("something has the other name") {
    fs::create_directory(scene.at("/envs/llm.kept"));
    CHECK(scene.apply(scene.action) == "conflict");
    CHECK(scene.last.message.find("/envs/llm.kept") != std::string::npos);
    CHECK(fs::is_directory(fs::symlink_status(scene.at("/envs/llm"))));
  }
  SECTION("a link to elsewhere comes back to nobody") {
    REQUIRE(scene.apply(scene.action) == "done");
    fs::remove(scene.at("/envs/llm"));
    fs::create_symlink("/elsewhere", scene.at("/envs/llm"));
    CHECK(scene.apply(*invert(scene.action)) == "conflict");
    CHECK(fs::read_symlink(scene.at("/envs/llm")) == "/elsewhere");
  }
  SECTION("no inode") {
    scene.action.inode = 0;
    CHECK(scene.apply(scene.action) == "conflict");
    CHECK(scene.is_before());
  }
}

TEST_CASE("requirement 2: 100,000 looks find something, while a directory and a link change places") {
  Scene scene;
  const auto path = scene.at("/envs/llm");
  std::atomic<bool> end = false;
  std::atomic<std::size_t> looks = 0, missing = 0;
  std::thread reader([&] {
    struct stat status{};
    std::array<char, 64> text{};
    while (!end || looks < 100'000) {
      missing += ::lstat(path.c_str(), &status) == 0 ? 0 : 1;
      missing += ::readlink(path.c_str(), text.data(), text.size()) >= 0 || errno == EINVAL ? 0 : 1;
      looks += 2;
    }
  });
  std::size_t turns = 0;
  for (; turns < 20 || looks < 100'000; ++turns) {
    REQUIRE(scene.apply(scene.action) == "done");
    REQUIRE(scene.apply(*invert(scene.action)) == "done");
  }
  end = true;
  reader.join();
  CHECK(missing == 0);
}

// sharefs cache prune: whether a cache is in use is asked once more after the person has answered.
#include "cli/app.hpp"
#include "support/catch.hpp"
#include "support/count.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <functional>
#include <sstream>
#include <streambuf>
#include <unistd.h>

using namespace sharefs;
using test::count_in;
namespace fs = std::filesystem;

namespace {

/// A person at a terminal who types `answers`, and something that happens before the first of them.
class Typed : public std::streambuf {
 public:
  Typed(std::string answers, std::function<void()> meanwhile)
      : m_answers(std::move(answers)), m_meanwhile(std::move(meanwhile)) {}

 protected:
  int_type underflow() override {
    if (m_begun)
      return traits_type::eof();
    m_begun = true;
    m_meanwhile();
    setg(m_answers.data(), m_answers.data(), m_answers.data() + m_answers.size());
    return traits_type::to_int_type(m_answers.front());
  }

 private:
  std::string m_answers;
  std::function<void()> m_meanwhile;
  bool m_begun = false;
};

} // namespace

TEST_CASE("a cache that a job began to use while the question stood is not deleted", "[cache]") {
  const test::TemporaryDirectory caches;
  const std::string one = "0123456789ab", other = "ba9876543210";
  const test::TemporaryDirectory root; // of the machine
  for (const auto& key : {one, other}) {
    caches.write("me/" + key + "/data", "x");
    root.write(caches.path().substr(1) + "/me/" + key + "/data", "x");
  }
  root.write("etc/sharefs/sharefs.yaml", "version: 1\ncaches: {local: " + caches.path() + "}\n");
  const auto system = std::make_shared<test::ScriptedSystem>(root.path());
  system->machine.identity.user = "me";
  system->machine.identity.uid = ::geteuid();
  system->machine.now = std::chrono::system_clock::now() + std::chrono::hours(1); // the caches are real, and older

  const std::string opened = root / "proc/7/fd/3"; // of a process of this machine
  fs::create_directories(root / "proc/7/fd");
  Typed typed("y\ny\n", [&] { fs::create_symlink(caches / ("me/" + other + "/data"), opened); });
  std::istream in(&typed);
  std::ostringstream out, err;
  ui::ConsoleOptions console;
  console.in_terminal = true;
  cli::Host host{[&](const std::string&) { return system; }, in, out, err, console, {}, "/"};
  const int code = cli::run({"sharefs", "cache", "prune", "--older-than", "0"}, host);
  INFO(err.str());
  REQUIRE(fs::is_symlink(opened));
  CHECK(code == 0);
  CHECK(count_in(err.str(), "delete " + (caches / ("me/" + one))) == 2);
  CHECK(count_in(err.str(), "delete " + (caches / ("me/" + other))) == 1);
  CHECK(count_in(err.str(), "this host has changed meanwhile; what is to be done now:") == 1);
}

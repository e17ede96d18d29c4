#include "base/text.hpp"
#include "cachefix/sanitize.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::cachefix;
namespace fs = std::filesystem;

namespace {

constexpr uid_t k_other_user = 1001;
const std::string k_copy = "/share/.sharefs-0123456789ab-a.json";

struct Job {
  test::TemporaryDirectory directory;
  test::ScriptedSystem system{directory.path()};
  Sanitized decision;

  Job() {
    system.machine.identity.uid = ::geteuid();
    fs::create_directories(real("/share"));
    fs::create_directories(real("/var"));
    decision.argv = {"bash", "-c", "python t.py " + k_copy};
    decision.copies = {{k_copy, "{}\n"}};
    decision.decisions.resize(1);
    decision.decisions[0].to = k_copy;
  }
  [[nodiscard]] std::string real(const std::string& path) const { return directory.path() + path; }
  [[nodiscard]] std::string text(const std::string& path) const {
    std::stringstream out;
    out << std::ifstream(real(path)).rdbuf();
    return out.str();
  }
  [[nodiscard]] unsigned mode(const std::string& path) const {
    struct stat status{};
    return ::lstat(real(path).c_str(), &status) == 0 ? status.st_mode & 07777U : 0U;
  }
  Result<void> prepare() { return cachefix::prepare(system, decision, {"/var/cache/alice", "", ""}); }
  /// The file that the command names in the end.
  [[nodiscard]] std::string named() const { return split_words(decision.argv[2]).back(); }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(real("/share")), {}));
  }
};

} // namespace

TEST_CASE("attack: a copy of a configuration file is not written through a link that somebody planted") {
  Job job;
  std::ofstream(job.real("/victim")) << "keys";
  const std::string target = GENERATE(as<std::string>(), "/victim", "/missing");
  fs::create_symlink(target, job.real(k_copy));
  REQUIRE(::lchown(job.real(k_copy).c_str(), k_other_user, k_other_user) == 0);
  REQUIRE(job.prepare());
  CHECK(job.text("/victim") == "keys");
  CHECK_FALSE(fs::exists(job.real("/missing")));
  CHECK(job.named() != k_copy);
  CHECK(job.text(job.named()) == "{}\n");
  CHECK(job.mode(job.named()) == 0600);
}

TEST_CASE("attack: a copy that somebody else made first is not used, and not changed") {
  Job job;
  std::ofstream(job.real(k_copy)) << "{}\n";
  REQUIRE(::chown(job.real(k_copy).c_str(), k_other_user, k_other_user) == 0);
  REQUIRE(job.prepare());
  CHECK(job.named() != k_copy);
  CHECK(job.decision.decisions[0].to == job.named());
  CHECK(job.text(job.named()) == "{}\n");
  CHECK(fs::path(job.named()).extension() == ".json");
}

TEST_CASE("a copy is made once, and a file of one's own with another content is left") {
  Job job;
  REQUIRE(job.prepare());
  CHECK(job.named() == k_copy);
  REQUIRE(job.prepare());
  CHECK(job.named() == k_copy);
  CHECK(job.files() == 1);
  std::ofstream(job.real(k_copy)) << "mine";
  REQUIRE(job.prepare());
  CHECK(job.named() != k_copy);
  CHECK(job.text(k_copy) == "mine");
}

TEST_CASE("the directory for all users is open to them whatever the umask, the own one is not") {
  Job job;
  job.decision.directories = {{"/var/cache/alice/0123456789ab", "/share/c"}};
  const mode_t before = ::umask(077);
  const auto prepared = job.prepare();
  ::umask(before);
  REQUIRE(prepared);
  CHECK(job.mode("/var/cache") == (::geteuid() == 0 ? 01777U : 0700U));
  CHECK(job.mode("/var/cache/alice") == 0700);
  CHECK(job.mode("/var/cache/alice/0123456789ab") == 0700);
  CHECK(job.text("/var/cache/alice/.origin-0123456789ab") == "/share/c\n");
}

TEST_CASE("attack: a user's directory that somebody else made is not used") {
  Job job;
  fs::create_directories(job.real("/var/cache/alice"));
  REQUIRE(::chmod(job.real("/var/cache").c_str(), 01777) == 0);
  REQUIRE(::chown(job.real("/var/cache/alice").c_str(), k_other_user, k_other_user) == 0);
  CHECK_FALSE(job.prepare());
}

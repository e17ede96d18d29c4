#include "exports/ask.hpp"
#include "exports/diagnose.hpp"
#include "exports/host.hpp"
#include "exports/parse.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::exports;
using Lines = std::vector<std::string>;

namespace {

/// A root directory of its own, gone at the end.
class Root {
 public:
  Root() {
    std::string name = std::filesystem::temp_directory_path() / "sharefs-exports-XXXXXX";
    m_path = ::mkdtemp(name.data());
  }
  ~Root() { std::filesystem::remove_all(m_path); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(m_path + path).parent_path());
    std::ofstream(m_path + path) << text;
  }
  void make(const std::string& path) const { std::filesystem::create_directories(m_path + path); }
  [[nodiscard]] const std::string& path() const { return m_path; }

 private:
  std::string m_path;
};

std::unique_ptr<test::ScriptedSystem> machine(const std::string& json, const std::string& root) {
  auto system = test::ScriptedSystem::from_json(json, root);
  REQUIRE(system);
  return std::move(*system);
}

constexpr const char* k_mountinfo =
    R"("mountinfo": "20 1 0:5 / / rw - ext4 /dev/sda rw\n21 20 0:6 / /ram rw - tmpfs tmpfs rw,size=1g\n")";

} // namespace

TEST_CASE("which files exportfs reads, in its order") {
  CHECK(exports_in_order({"b.exports", "a.exports", "10.exports", "9.exports", ".x.exports", ".exports", "c.conf"}) ==
        Lines{"9.exports", "10.exports", "a.exports", "b.exports"});
}

TEST_CASE("the exports files of a host") {
  const Root root;
  const sys::Files files(root.path());
  SECTION("none") {
    const auto host = read_host_files(files);
    REQUIRE(host);
    CHECK(host->files.empty());
    CHECK_FALSE(host->directory);
  }
  SECTION("all kinds") {
    root.write("/etc/exports", "/a h(rw)\n");
    root.write("/etc/exports.d/sharefs.exports", "/b h(rw)\n");
    root.write("/etc/exports.d/a.exports", "/c h(rw)\n");
    root.write("/etc/exports.d/backup.exports~", "/d h(rw)\n");
    const auto host = read_host_files(files);
    REQUIRE(host);
    Lines names;
    for (const auto& file : host->files)
      names.push_back(file.name);
    CHECK(names == Lines{"/etc/exports", "/etc/exports.d/a.exports", "/etc/exports.d/sharefs.exports"});
    REQUIRE(host->diagnoses.size() == 1);
    CHECK(host->diagnoses[0].subject == "/etc/exports.d/backup.exports~");
    CHECK(host->own == "/b h(rw)\n");
    CHECK(host->directory);
  }
  SECTION("others than root can write it") {
    const auto path = root.path() + "/etc/exports";
    root.write("/etc/exports", "/a h(rw)\n");
    const auto said = [&] {
      const auto host = read_host_files(files);
      return host && host->diagnoses.size() == 1 && host->diagnoses[0].code == "SF159";
    };
    REQUIRE(::chmod(path.c_str(), 0644) == 0);
    CHECK_FALSE(said());
    // user::rw-, user:65534:rw-, group::r--, mask::rw-, other::r-- (linux/posix_acl_xattr.h)
    constexpr std::array<unsigned char, 44> k_acl{2, 0,   0,   0,   1,   0,   6,  0, 255, 255, 255, 255, 2,   0,  6,
                                                  0, 254, 255, 0,   0,   4,   0,  4, 0,   255, 255, 255, 255, 16, 0,
                                                  6, 0,   255, 255, 255, 255, 32, 0, 4,   0,   255, 255, 255, 255};
    if (::setxattr(path.c_str(), "system.posix_acl_access", k_acl.data(), k_acl.size(), 0) == 0)
      CHECK(said());
    else
      WARN("this file system has no ACLs");
    REQUIRE(::chmod(path.c_str(), 0666) == 0);
    CHECK(said());
  }
  SECTION("5 what is no file is passed over, and said") {
    root.write("/etc/exports.d/folder.exports/x", "");
    root.write("/etc/exports.d/z.exports", "/c h(rw)\n");
    REQUIRE(::mkfifo((root.path() + "/etc/exports.d/pipe.exports").c_str(), 0600) == 0);
    REQUIRE(::symlink("pipe.exports", (root.path() + "/etc/exports.d/link.exports").c_str()) == 0);
    REQUIRE(::symlink("nothing", (root.path() + "/etc/exports.d/gone.exports").c_str()) == 0);
    const auto host = read_host_files(files);
    REQUIRE(host);
    CHECK(host->files.size() == 1);
    Lines said;
    for (const auto& one : host->diagnoses)
      said.push_back(one.subject + " " + to_string(one.severity));
    CHECK(said == Lines{"/etc/exports.d/folder.exports warning", "/etc/exports.d/gone.exports warning",
                        "/etc/exports.d/link.exports error", "/etc/exports.d/pipe.exports warning"});
  }
}

TEST_CASE("names are resolved by getent, and no answer is no judgement") {
  const auto system = machine(R"({"run": [
    {"argv": ["getent", "--no-addrconfig", "ahosts", "n1"], "out": "10.0.0.1       STREAM n1.lab\n10.0.0.1       DGRAM  \nfe80::1        STREAM \n"},
    {"argv": ["getent", "--no-addrconfig", "ahosts", "gone"], "exit_code": 2},
    {"argv": ["getent", "--no-addrconfig", "ahosts", "odd"], "exit_code": 3}]})",
                              "/nonexistent");
  const auto known = resolve_name(*system, "n1", std::chrono::seconds(1));
  REQUIRE(known);
  CHECK(known->addresses == Lines{"10.0.0.1", "fe80::1"});
  CHECK(known->canonical == "n1.lab");
  const auto gone = resolve_name(*system, "gone", std::chrono::seconds(1));
  REQUIRE(gone);
  CHECK(gone->addresses.empty());
  CHECK_FALSE(resolve_name(*system, "odd", std::chrono::seconds(1)));
}

TEST_CASE("5 an address with an interface is looked up, others are not") {
  const Root root;
  root.make("/a");
  const auto system = machine(
      std::string(R"({"run": [{"argv": ["getent", "--no-addrconfig", "ahosts", "fe80::1%eth9"], "exit_code": 2}], )") +
          k_mountinfo + "}",
      root.path());
  const auto facts = probe_facts(*system, {parse("/a fe80::1%eth9(rw) fe80::1(rw) 10.0.0.1(rw)", "f")});
  REQUIRE(facts);
  REQUIRE(facts->names.size() == 1);
  CHECK(facts->names.at("fe80::1%eth9").addresses.empty());
}

TEST_CASE("groups are resolved by getent") {
  const auto system = machine(R"({"run": [
    {"argv": ["getent", "group", "ml"], "out": "ml:x:1234:alice,bob\n"},
    {"argv": ["getent", "group", "none"], "exit_code": 2}]})",
                              "/nonexistent");
  CHECK(resolve_group(*system, "ml") == 1234U);
  const auto none = resolve_group(*system, "none");
  REQUIRE_FALSE(none);
  CHECK(none.error().hint.find("groupadd none") != std::string::npos);
}

TEST_CASE("facts of directories: through links, with their file system") {
  const Root root;
  root.make("/data/real");
  root.make("/ram/x");
  root.write("/file", "");
  root.write("/etc/fstab", "/dev/sdz1 /data/real ext4 defaults 0 2\n"); // an image's disks are not mounted here
  std::filesystem::create_directory_symlink("/data/real", root.path() + "/link");
  const auto system = machine(std::string("{") + k_mountinfo + "}", root.path());
  const auto facts = probe_facts(
      *system, {parse("/link 10.0.0.1(rw)\n/ram/x 10.0.0.1(rw)\n/gone/x 10.0.0.1\nrel *\n", "f")}, {"/file"});
  REQUIRE(facts);
  using Kind = sys::EntryKind;
  const auto& link = facts->directories.at("/link");
  CHECK(link.kind == Kind::directory);
  CHECK(link.resolved == "/data/real");
  CHECK(link.fs_type == "ext4");
  CHECK(facts->directories.at("/ram/x").mount == "/ram");
  CHECK(facts->mounts.at("/ram")->super_options == "rw,size=1g");
  CHECK(facts->directories.at("/gone/x").kind == Kind::missing);
  CHECK(facts->directories.at("/file").exists());
  CHECK(facts->directories.find("rel") == facts->directories.end());
  CHECK(facts->not_mounted.empty());
  CHECK(facts->names.empty());
}

TEST_CASE("what others could replace is known, and where it leads") {
  const Root root;
  root.make("/data/real");
  root.make("/open/proj");
  root.make("/safe");
  std::filesystem::permissions(root.path() + "/open", std::filesystem::perms(0777));
  std::filesystem::create_directory_symlink("/data/real", root.path() + "/open/link");
  const auto system = machine(std::string("{") + k_mountinfo + "}", root.path());
  const auto facts = probe_facts(*system, {parse("/open/proj h(rw)\n/open/link h\n/safe h\n/open/new/dir h", "f")});
  REQUIRE(facts);
  CHECK(facts->replaceable.size() == 3);
  CHECK(facts->replaceable.at("/open/proj") == "others could replace `proj`: `/open` has mode 0777");
  CHECK_FALSE(facts->replaceable.contains("/safe"));
  CHECK(facts->directories.at("/open/link").resolved == "/data/real");
  const std::vector<ExportsFile> files{parse("/open/proj 10.0.0.1(rw)", "f")};
  const auto found = diagnose(files, predict_from_text(files, *facts), *facts);
  REQUIRE(found.size() == 3); // and a part of its file system, and no answer about `h`
  CHECK((found[0].code == "SF138" || found[1].code == "SF138"));
  CHECK(found[2].code == "SF122");
}

TEST_CASE("a directory on a file system that hangs is given up") {
  const auto system = machine(R"({"entries": {"/hung": {"hung": true}}})", "/");
  const auto facts = probe_facts(*system, {parse("/hung/share 10.0.0.1(rw)", "f")});
  REQUIRE(facts);
  CHECK(facts->directories.at("/hung/share").hung());
  CHECK(facts->directories.at("/hung/share").error().code == ErrorCode::timeout);
}

TEST_CASE("a name of /etc/hosts needs no lookup, and one without an answer is remembered") {
  const auto system = machine(R"({"entries": {
    "/etc/nsswitch.conf": {"kind": "file", "content": "passwd: files\nhosts: files dns\n"},
    "/etc/hosts": {"kind": "file", "content": "10.0.0.1 n1.lab N1 # web\n10.0.0.2 other\n10.0.1.1 n1\nx web\n"}},
    "run": [{"argv": ["getent", "--no-addrconfig", "ahosts", "web"], "exit_code": 3}]})",
                              "/");
  const auto facts = probe_facts(*system, {parse("/a n1(rw) web(rw)", "f")});
  REQUIRE(facts);
  CHECK(facts->names.at("n1") == NameFact{{"10.0.0.1", "10.0.1.1"}, "n1.lab"});
  CHECK(facts->not_answered == std::set<std::string>{"web"});
}

TEST_CASE("a name that is known is not looked up again") {
  const auto system = machine("{}", "/");
  const Names known{{"n1", {{"10.0.0.1"}, "n1.lab"}}, {"n1.lab", {{"10.0.0.1"}, "n1.lab"}}};
  const auto facts = probe_facts(*system, {parse("/a n1(rw)", "f")}, {}, known);
  REQUIRE(facts);
  CHECK(facts->names == known);
  CHECK(system->calls().empty());
}

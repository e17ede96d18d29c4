#include "mounts/elsewhere.hpp"
#include "samples.hpp"
#include "support/catch.hpp"
#include "sys/process/remote.hpp"

#include <cerrno>
#include <fmt/format.h>

using namespace sharefs;
using namespace sharefs::mounts;

namespace {

constexpr std::int64_t k_now = 1'800'000'000;

std::string answer_of(const std::string& rest, std::int64_t time = k_now) {
  return fmt::format("Welcome!\n@sharefs host node2\n@sharefs boot b2\n@sharefs time {}\n@sharefs token secret\n"
                     "@sharefs owner 0\n{}",
                     time, rest);
}
std::string locks(const std::string& flock, const std::string& posix) {
  return "@sharefs options rw,vers=4.2,local_lock=none\n@sharefs flock " + flock + "\n@sharefs posix " + posix + "\n";
}

/// A mount at /data/share, and a node2 that gives these answers, one after the other; "" for an ssh that fails.
struct Lab {
  test::ScriptedSystem system;
  std::vector<std::string> answers;
  std::vector<sys::Command> asked;
  std::string super = "rw,vers=3,local_lock=none";

  ElsewhereFound look(ElsewhereRequest request = {"node2", false, {}, {}, std::chrono::seconds(1)},
                      std::optional<sys::User> writer = std::nullopt) {
    system.machine.mounts = test::table_of(test::nfs_line(50, 1, "/data/share", "storage1:/mnt/share", super));
    system.machine.now = std::chrono::system_clock::from_time_t(k_now);
    system.machine.identity.hostname = "node1";
    system.machine.identity.addresses = {"10.0.0.2"};
    if (system.machine.locks.name.empty())
      system.machine.locks = {".sharefs-lock-x", "secret", 0, 0, 0, true};
    system.machine.on_run = [&](const sys::Command& command) -> Result<sys::Completed> {
      sys::Completed completed;
      completed.exit_code = 0;
      if (command.argv[0] == "getent") {
        completed.out = command.argv[1] == "group" ? "ml:x:3000:\n" : "alice:x:2001:2001::/home/alice:/bin/sh\n";
        return completed;
      }
      asked.push_back(command);
      const auto said = asked.size() <= answers.size() ? answers[asked.size() - 1] : "";
      if (said.empty()) {
        completed.exit_code = 255;
        completed.err = "banner\nssh: connect to host node2 port 22: No route to host\r\n";
      }
      completed.out = said;
      return completed;
    };
    return look_from_elsewhere(system, {{test::point_with("rw"), writer}}, request);
  }
};

std::string text_of(const ElsewhereFound& found) {
  std::string text;
  for (const auto& one : found.diagnoses)
    text += one.code + " " + one.message + "; ";
  for (const auto& line : found.results.at(0).good)
    text += line + "; ";
  return text + (found.results.at(0).ok ? "ok" : "failed");
}

std::string tried(const std::string& during, const std::string& after,
                  const std::string& super = "rw,local_lock=none") {
  Lab lab;
  lab.super = super;
  lab.answers = {during, after};
  return text_of(lab.look());
}

} // namespace

TEST_CASE("what a node says of a lock") {
  CHECK(exclusion_of("held", "free") == Exclusion::excludes);
  CHECK(exclusion_of("free", "free") == Exclusion::open);
  CHECK(exclusion_of("held", "held") == Exclusion::stuck);
  CHECK(exclusion_of("No locks available", "free") == Exclusion::unknown);
  CHECK(exclusion_of("", "") == Exclusion::unknown);
}

TEST_CASE("locks between two nodes") {
  const auto free = answer_of(locks("free", "free"));
  CHECK(tried(answer_of(locks("held", "held")), free) == "locks exclude node2 (flock, fcntl); ok");
  CHECK(tried(free, free, "rw,vers=3,local_lock=all") ==
        "SF239 locks do not exclude node2 (flock, fcntl): they are local to each node, by nolock or local_lock on this "
        "host; failed");
  CHECK(tried(answer_of(locks("held", "no python3 there")), free) ==
        "SF240 fcntl could not be tried with node2: no python3 there; locks exclude node2 (flock); ok");
  CHECK(tried(answer_of(locks("held", "held")), answer_of(locks("held", "free"))).find("is still refused to node2") !=
        std::string::npos);
  CHECK(tried(answer_of("@sharefs missing the test file is not in /data/share there\n"), free) ==
        "SF240 locks could not be tried with node2: the test file is not in /data/share there; failed");
  CHECK(tried("@sharefs host node2\n@sharefs token other\n", free).find("another file is in its place") !=
        std::string::npos);
  CHECK(tried("", "") == "SF240 locks could not be tried with node2: ssh: connect to host node2 port 22: No route to "
                         "host; failed");
}

TEST_CASE("a node that does not answer is asked once") {
  Lab lab;
  lab.look();
  CHECK(lab.asked.size() == 1);
}

TEST_CASE("this host is no second node") {
  Lab lab;
  lab.system.machine.identity.boot_id = "b2";
  lab.answers = {"@sharefs host node1\n@sharefs boot b2\n@sharefs token secret\n" + locks("held", "held"),
                 answer_of(locks("free", "free"))};
  CHECK(text_of(lab.look()).find("node2: it is this host") != std::string::npos);
}

TEST_CASE("a lock that this host itself does not get") {
  Lab lab;
  lab.system.machine.locks = {".sharefs-lock-x", "secret", 0, ENOLCK, 0, true};
  const auto found = lab.look();
  CHECK(text_of(found).starts_with("SF239 flock fails there: No locks available"));
  CHECK(lab.asked.empty());
}

TEST_CASE("ssh asks nobody, and the words of a path are data") {
  Lab lab;
  lab.look({"root@node2", false, {}, {}, std::chrono::seconds(1)}, sys::User{"gid 2000", 65534, 2000, {2000}, ""});
  REQUIRE(lab.asked.size() == 1);
  const auto line = shell_join(lab.asked[0].argv);
  CHECK(line.starts_with("ssh -o BatchMode=yes -o ConnectTimeout=5 "));
  CHECK(line.ends_with("-- root@node2 'timeout -k 1 10 setpriv --reuid=65534 --regid=2000 --clear-groups sh'"));
  CHECK(lab.asked[0].input.starts_with("set -- '/data/share' '.sharefs-lock-x'\n"));
  CHECK(remote_script({"/a b'; rm -rf /\n$(x)", "f", false, {"-x"}, {}})
            .starts_with("set -- '/a b'\\''; rm -rf /\n$(x)' 'f'\n"));
  for (const auto* host : {"", "-oProxyCommand=x", "a b", "a;b", "$(x)", "a\nb"})
    CHECK_FALSE(sys::check_remote_host(host));
  CHECK(sys::check_remote_host("root@node-2.example:22"));
}

TEST_CASE("clocks and numbers of users that differ") {
  Lab lab;
  lab.answers = {
      answer_of("@sharefs passwd alice:2099\n@sharefs group data:3000\n" + locks("held", "held"), k_now - 37),
      answer_of(locks("free", "free"), k_now - 37)};
  CHECK(
      text_of(lab.look({"node2", false, {"alice"}, {"ml"}, std::chrono::seconds(1)})) ==
      "SF236 the clock of node2 is 37 s behind this host's; SF237 alice is uid 2001 here and 2099 on node2; SF237 gid "
      "3000 is ml here and data on node2; locks exclude node2 (flock, fcntl); ok");
  CHECK(compare_accounts(test::point_with("rw"), "s", {{{"alice", "1"}}, {}}, {{{"bob", "2"}}, {}}).empty());
}

TEST_CASE("how the server sees this host") {
  const auto view = parse_remote_view("@sharefs client #class IP domain\n@sharefs client nfsd 10.0.0.9 *\n"
                                      "@sharefs client nfsd 10.0.0.2 10.0.0.0/24,node1\n"
                                      "@sharefs export #path domain(flags)\n"
                                      "@sharefs export /mnt\t10.0.0.0/24,node1(ro,sync)\n"
                                      "@sharefs export /mnt/share\t*(rw,async)\n"
                                      "@sharefs export /mnt/sh\\040are\t10.0.0.0/24,node1(rw,root_squash,uuid=1:2)\n");
  const std::vector<std::string> own{"fe80::1", "10.0.0.2"};
  CHECK(admission_of(view, own, "/mnt/sh are/sub") == Admission{"10.0.0.0/24,node1", "rw,root_squash"});
  CHECK(admission_of(view, own, "/mnt/share") == Admission{"10.0.0.0/24,node1", "ro,sync"});
  CHECK_FALSE(admission_of(view, own, "/srv"));
  CHECK_FALSE(admission_of(view, {"10.0.0.3"}, "/mnt/share"));
  const auto six = parse_remote_view("@sharefs client nfsd fd00:0000:0000:0000:0000:0000:0000:0002 *\n"
                                     "@sharefs export /\t*(rw)\n");
  CHECK(admission_of(six, {"fd00::2"}, "/a") == Admission{"*", "rw"});
}

TEST_CASE("what is compared with the server") {
  const auto seen = [](const std::string& rest, std::uint32_t uid_here = 0) {
    Lab lab;
    lab.system.machine.locks = {".sharefs-lock-x", "secret", uid_here, 0, 0, true};
    lab.answers = {answer_of(rest)};
    return text_of(lab.look({"", true, {}, {}, std::chrono::seconds(1)}));
  };
  const std::string client = "@sharefs client nfsd 10.0.0.2 *\n";
  CHECK(seen(client + "@sharefs export /mnt/share\t*(rw,sync)\n") == "storage1 admits this host as * with rw,sync; ok");
  CHECK(seen(client + "@sharefs export /mnt/share\t*(rw,async)\n").find("SF244 storage1 answers before") == 0);
  CHECK(seen("").find("SF240 how this host is admitted is not known on storage1: /proc/net/rpc") == 0);
  CHECK(
      seen(client + "@sharefs export /mnt/share\t*(rw,sync)\n@sharefs owner 1000\n", 65534) ==
      "SF237 a file belongs to uid 1000 on storage1 and shows here as uid 65534 (nobody); storage1 admits this host as "
      "* with rw,sync; ok");
}

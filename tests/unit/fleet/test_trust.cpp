#include "base/text.hpp"
#include "fleet/grant.hpp"
#include "fleet/host_keys.hpp"
#include "fleet/script.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "sys/real_system.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <sys/stat.h>

using namespace sharefs;
using namespace sharefs::fleet;

namespace {

Reached reached(const std::string& name, const std::string& host, const std::string& port = "22") {
  Reached one;
  one.node.name = name;
  one.ssh.host = host;
  one.ssh.port = port;
  one.ssh.user = "root";
  return one;
}

std::string content_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

} // namespace

TEST_CASE("ssh's own words say how it reaches a node", "[fleet]") {
  const auto ssh = parse_ssh_settings("host gpu1\nuser root\nhostname GPU1.cluster\nport 2222\nproxycommand none\n"
                                      "identityfile ~/.ssh/id_rsa\nidentityfile ~/.ssh/id_ed25519\n"
                                      "userknownhostsfile ~/.ssh/known_hosts ~/.ssh/known_hosts2\n"
                                      "globalknownhostsfile /etc/ssh/ssh_known_hosts\n",
                                      "/root");
  CHECK(ssh.known_name() == "[gpu1.cluster]:2222");
  CHECK(ssh.identity_files == std::vector<std::string>{"/root/.ssh/id_rsa", "/root/.ssh/id_ed25519"});
  CHECK(ssh.user_known_hosts == std::vector<std::string>{"/root/.ssh/known_hosts", "/root/.ssh/known_hosts2"});
  CHECK(ssh.proxy_command.empty());
  CHECK(parse_ssh_settings("hostname a\nport 22\nhostkeyalias Rack\n", "/root").known_name() == "rack");
  const auto site =
      parse_ssh_settings("hostname a\nmacs m\nciphers c\ncertificatefile ~/c\n", "/root", "macs m\nciphers x\n");
  CHECK(site.kept == std::vector<std::string>{"ciphers c", "certificatefile ~/c"});
}

TEST_CASE("a test with one key lets no other one in", "[fleet]") {
  auto one = reached("gpu1", "10.0.0.1");
  one.ssh.identity_files = {"~/.ssh/id_rsa", "~/.ssh/id_ed25519"};
  const auto any = ssh_config_with_key({one});
  one.key = "/root/my key";
  one.ssh.proxy_jump = "a,alice@jump:2222";
  const auto alone = ssh_config_with_key({one});
  CHECK(alone.find("IdentityFile \"/root/my key\"\n") != std::string::npos);
  CHECK(alone.find("IdentitiesOnly yes") != std::string::npos);
  CHECK(alone.find("id_rsa") == std::string::npos);
  CHECK(alone.find("Include") == std::string::npos);
  CHECK(alone.find("  ProxyCommand ssh -o BatchMode=yes -J a -W '[%h]:%p' ssh://alice@jump:2222\n") !=
        std::string::npos); // ProxyJump would look for the jump host in this text
  CHECK(any.find("IdentityFile ~/.ssh/id_rsa\n") != std::string::npos);
  CHECK(any.find("IdentitiesOnly") == std::string::npos);
}

TEST_CASE("offered keys are named as ssh will look for them", "[fleet]") {
  auto nodes = std::vector{reached("gpu1", "10.0.0.1"), reached("gpu2", "gpu2", "2222"), reached("gpu3", "gpu3")};
  const auto found = parse_keyscan("# 10.0.0.1:22 SSH-2.0-OpenSSH_9.2\n10.0.0.1 ssh-rsa RRR\n"
                                   "10.0.0.1 ssh-ed25519 EEE\n[gpu2]:2222 ssh-ed25519 FFF\n");
  for (auto& node : nodes)
    if (const auto keys = found.find(node.ssh.with_port(node.ssh.host)); keys != found.end())
      node.keys = keys->second;
  CHECK(nodes[2].keys.empty()); // ssh-keyscan says nothing of a host that does not answer
  CHECK(known_hosts_lines(nodes) == "10.0.0.1,gpu1 ssh-ed25519 EEE\n10.0.0.1,gpu1 ssh-rsa RRR\n"
                                    "[gpu2]:2222 ssh-ed25519 FFF\n");
  CHECK(with_host_keys("other ssh-rsa X", {nodes[1]}) == "other ssh-rsa X\n[gpu2]:2222 ssh-ed25519 FFF\n");
  REQUIRE(read_fingerprints("256 SHA256:one 10.0.0.1 (ED25519)\n3072 SHA256:two 10.0.0.1 (RSA)\n"
                            "256 SHA256:three gpu2 (ED25519)\n",
                            nodes));
  CHECK(nodes[0].keys[1].fingerprint == "SHA256:two");
  CHECK(nodes[1].keys[0].fingerprint == "SHA256:three");
  CHECK(!read_fingerprints("256 SHA256:one 10.0.0.1 (ED25519)\n", nodes));
  CHECK(!read_fingerprints("a SHA256:1\nb SHA256:2\nc SHA256:3\nd SHA256:4\n", nodes));
}

TEST_CASE("a list from the consoles names nodes in the ways in which it comes", "[fleet]") {
  const std::vector nodes{reached("gpu1", "10.0.0.1"), reached("gpu2", "gpu2")};
  const auto listed = parse_fingerprint_list("256 SHA256:aaa root@gpu1 (ED25519)\n"
                                             "gpu2: 256 SHA256:bbb no comment (ECDSA)\n"
                                             "10.0.0.1 SHA256:ccc\n"
                                             "SHA256:ddd gpu22\n# gpu1 has no fingerprint here\n",
                                             nodes);
  CHECK(listed ==
        std::map<std::string, std::set<std::string>>{{"gpu1", {"SHA256:aaa", "SHA256:ccc"}}, {"gpu2", {"SHA256:bbb"}}});
}

TEST_CASE("attack: the comment of a host key names another node", "[fleet]") {
  const std::vector nodes{reached("gpu2", "10.0.0.2"), reached("gpu3", "gpu3")};
  // gpu1, which is not asked about, has printed the key that answers in the place of gpu2.
  const auto listed = parse_fingerprint_list("gpu1 256 SHA256:aaa root@gpu2 (ED25519)\n"
                                             "gpu1: SHA256:bbb root@gpu2\n"
                                             "10.0.0.2: 256 SHA256:ccc root@gpu3 (ED25519)\n",
                                             nodes);
  CHECK(listed == std::map<std::string, std::set<std::string>>{{"gpu2", {"SHA256:ccc"}}});
  for (const auto* line : {"256 SHA256:aaa gpu2 root@gpu3", "gpu2 gpu3 SHA256:aaa"}) {
    const auto both = parse_fingerprint_list(line, nodes);
    REQUIRE_FALSE(both);
    CHECK(both.error().message == "a line with SHA256:aaa names two nodes: gpu2, gpu3");
  }
}

TEST_CASE("known_hosts that keeps nothing is passed over, and named where there is no other") {
  test::TemporaryDirectory home;
  sys::RealSystem system;
  const Trust trust{.system = system, .directory = "/nowhere", .run = {}};
  auto node = reached("gpu1", "10.0.0.1");
  node.keys = {{"ssh-ed25519", "AAA", ""}};
  node.ssh.user_known_hosts = {"/dev/null"};
  const auto refused = plan_known_hosts(trust, {node}, "", false);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "gpu1: ssh_config sends its host key to /dev/null, which keeps nothing");
  CHECK(refused.error().hint.find("--system") != std::string::npos);
  node.ssh.user_known_hosts.push_back(home.path() + "/known_hosts2");
  const auto plan = plan_known_hosts(trust, {node}, "", false);
  REQUIRE(plan);
  CHECK(std::get<plan::File>(plan->steps.at(0).action).path == home.path() + "/known_hosts2");
}

TEST_CASE("the line of an authority names all nodes, and grows", "[fleet]") {
  const auto gpu1 = reached("gpu1", "10.0.0.1"), gpu2 = reached("gpu2", "gpu2");
  const auto first = with_authority("x ssh-rsa A\n", {gpu1}, "ssh-ed25519 CA comment");
  CHECK(first == "x ssh-rsa A\n@cert-authority 10.0.0.1,gpu1 ssh-ed25519 CA\n");
  CHECK(with_authority(first, {gpu1}, "ssh-ed25519 CA comment") == first);
  CHECK(with_authority(first, {gpu2}, "ssh-ed25519 CA") ==
        "x ssh-rsa A\n@cert-authority gpu2,10.0.0.1,gpu1 ssh-ed25519 CA\n");
  CHECK(split_lines(with_authority(first, {gpu2}, "ssh-ed25519 OTHER")).size() == 3);
}

TEST_CASE("a key comes once into authorized_keys, whatever the file ends with, and goes again") {
  test::TemporaryDirectory home;
  const auto file = home.path() + "/.ssh/authorized_keys";
  const auto work = [&](GrantWork what, const std::string& key, const std::string& mark = "m1") {
    sys::RealSystem system;
    sys::Command command;
    command.argv = {"sh", "-c", grant_script(Grant::key, what, mark, "me@here"), "sh", "gpu1"};
    command.environment["HOME"] = home.path();
    command.input = key + "\n";
    const auto ended = system.run(command);
    REQUIRE(ended);
    INFO(ended->err);
    return script_outcome({"gpu1"}, ended->out, {0, ""}).state;
  };
  CHECK(work(GrantWork::check, "ssh-ed25519 AAA") == State::pending);
  CHECK_FALSE(std::ifstream(file).good());
  CHECK(work(GrantWork::add, "ssh-ed25519 AAA") == State::changed);
  CHECK(content_of(file) == "ssh-ed25519 AAA me@here sharefs-m1\n");
  CHECK(work(GrantWork::check, "ssh-ed25519 AAA") == State::ok);
  CHECK(work(GrantWork::add, "ssh-ed25519 AAA", "m2") == State::ok);
  std::ofstream(file, std::ios::app) << "# ssh-ed25519 CCC\nno-pty ssh-rsa BBB own\nssh-rsa DDD without an end";
  ::chmod(file.c_str(), 0640);
  CHECK(work(GrantWork::add, "ssh-rsa BBB", "m2") == State::ok);
  CHECK(work(GrantWork::add, "ssh-ed25519 CCC", "m2") == State::changed); // a comment is no key
  const std::string own = "# ssh-ed25519 CCC\nno-pty ssh-rsa BBB own\nssh-rsa DDD without an end\n";
  CHECK(content_of(file) == "ssh-ed25519 AAA me@here sharefs-m1\n" + own + "ssh-ed25519 CCC me@here sharefs-m2\n");
  // Exactly the line that came with this mark goes, and the file stays as it is otherwise.
  CHECK(work(GrantWork::remove, "") == State::changed);
  CHECK(content_of(file) == own + "ssh-ed25519 CCC me@here sharefs-m2\n");
  CHECK(work(GrantWork::remove, "") == State::ok);
  CHECK(work(GrantWork::remove, "", "m2") == State::changed);
  CHECK(content_of(file) == own);
  struct stat status{};
  REQUIRE(::stat(file.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777U) == 0640U);
  CHECK(work(GrantWork::remove, "", "m3") == State::ok);
}

TEST_CASE("an authorized_keys behind a link is changed where it lies") {
  test::TemporaryDirectory home;
  std::filesystem::create_directories(home.path() + "/.ssh");
  std::filesystem::create_symlink("../keys", home.path() + "/.ssh/authorized_keys");
  sys::RealSystem system;
  sys::Command command;
  command.argv = {"sh", "-c", grant_script(Grant::key, GrantWork::add, "m1", ""), "sh", "gpu1"};
  command.environment["HOME"] = home.path();
  command.input = "ssh-ed25519 AAA\n";
  REQUIRE(system.run(command));
  CHECK(std::filesystem::is_symlink(home.path() + "/.ssh/authorized_keys"));
  CHECK(content_of(home.path() + "/keys") == "ssh-ed25519 AAA sharefs-m1\n");
}

TEST_CASE("a node's host keys are read from what it says") {
  CHECK(parse_own_host_keys("Welcome\n@sharefs hostkey /etc/ssh/a.pub ssh-ed25519 AAA\n"
                            "@sharefs hostkey /etc/ssh/b.pub ssh-rsa BBB\n@sharefs end ok\n") ==
        std::vector<OwnHostKey>{{"/etc/ssh/a.pub", "ssh-ed25519 AAA"}, {"/etc/ssh/b.pub", "ssh-rsa BBB"}});
  CHECK(parse_own_host_keys("@sharefs failed sshd there does not say which host keys it has\n").empty());
}

TEST_CASE("a step brings a key to nodes and takes it away again, and who lets nobody in is told what helps") {
  sys::RealSystem system;
  Trust trust{.system = system, .directory = "/nowhere", .run = {}};
  trust.nodes = {reached("gpu1", "10.0.0.1"), reached("gpu2", "10.0.0.2")};
  trust.note({{.node = "gpu1", .state = State::denied}, {.node = "gpu2", .state = State::ok}});
  trust.explain_denied();
  CHECK(trust.outcomes.at("gpu1").hint.starts_with("`ssh-keygen -t ed25519` makes one"));
  CHECK(trust.outcomes.at("gpu2").hint.empty());
  trust.key = "/home/a/.ssh/id";
  trust.public_key = "ssh-ed25519 AAA a@b";
  trust.nodes[0].key = "/home/a/.ssh/other";
  trust.explain_denied();
  CHECK(trust.outcomes.at("gpu1").hint ==
        "ssh uses /home/a/.ssh/other for it: `sharefs nodes trust NODE` brings that key");
  trust.nodes[0].key = trust.key;
  trust.explain_denied();
  CHECK(trust.outcomes.at("gpu1").hint.ends_with(": " + trust.public_key));

  auto step =
      grant_step(trust, trust.nodes, {.grant = Grant::key, .mark = "m1", .password = "/p"}, {"--engine", "pdsh"});
  step.argv.erase(step.argv.begin()); // this program
  step.undo.erase(step.undo.begin());
  const Argv words{"nodes", "grant", "key", "gpu[1-2]", "--mark", "m1", "--engine", "pdsh", "--key", trust.key};
  CHECK(std::ranges::equal(std::span(step.argv).first(words.size()), words));
  CHECK(Argv(step.argv.begin() + std::ssize(words), step.argv.end()) ==
        Argv{"--password-file", "/p", "--record", "m1"});
  CHECK(std::ranges::equal(std::span(step.undo).first(words.size()), words));
  CHECK(step.undo.size() == words.size() + 1);
  CHECK(step.undo.back() == "--remove");
}

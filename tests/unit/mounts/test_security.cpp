#include "mounts/security.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;

namespace {

std::string lacks(const std::string& options, const SecurityFacts& facts) {
  std::string text;
  for (const auto& one : check_security(test::point_with(options), facts))
    text += one.code + " " + one.message + "; ";
  return text;
}

} // namespace

TEST_CASE("what Kerberos and TLS need of this host") {
  CHECK(lacks("sec=krb5p", {}) ==
        "SF238 sec=krb5p needs /etc/krb5.keytab on this host; SF238 sec=krb5p needs rpc.gssd running on this host; ");
  CHECK(lacks("sec=krb5", {{"rpc.gssd"}, true}).empty());
  CHECK(lacks("xprtsec=mtls", {{"rpc.gssd"}, true}) == "SF238 xprtsec=mtls needs tlshd running on this host; ");
  CHECK(lacks("xprtsec=tls", {{"tlshd"}, false}).empty());
  CHECK(lacks("sec=sys,xprtsec=none", {}).empty());
  CHECK(needs_security({test::point_with("rw"), test::point_with("sec=krb5i")}));
  CHECK_FALSE(needs_security({test::point_with("rw,sec=sys")}));
}

TEST_CASE("the daemons are looked for by their names") {
  test::ScriptedSystem system;
  system.machine.entries["/proc"].kind = sys::EntryKind::directory;
  system.machine.entries["/proc"].names = {"1", "44", "45", "self"};
  test::add_file(system, "/proc/1/comm", "systemd\n");
  test::add_file(system, "/proc/44/comm", "rpc.gssd\n");
  test::add_file(system, "/proc/45/comm", "tlshd\n");
  test::add_file(system, "/etc/krb5.keytab", "x");
  test::leave_rest_missing(system);
  CHECK(security_facts(system, std::chrono::seconds(1)) == SecurityFacts{{"rpc.gssd", "tlshd"}, true});
}

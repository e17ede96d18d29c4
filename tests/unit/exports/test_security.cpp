// What an export with sec=krb5 or xprtsec=tls needs of the server.
#include "exports/server.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"

using namespace sharefs;
using namespace sharefs::exports;
using Lines = std::vector<std::string>;

namespace {

Lines lacking(const std::string& options, const std::string& entries, int grep = 0) {
  const auto system = test::ScriptedSystem::from_json(
      R"({"run": [{"argv": ["grep", "-qw", "tls_server_hello_x509", "/proc/kallsyms"], "exit_code": )" +
          std::to_string(grep) + R"(}],
          "entries": {"/proc/self/ns/net": {"kind": "symlink", "link_target": "net:[7]"})" +
          entries + "}}",
      "/nonexistent");
  REQUIRE(system);
  Lines codes;
  for (const auto& one : check_security(**system, {make_export("/srv/a", "h", {options}, {})}))
    codes.push_back(one.code + " " + one.message);
  return codes;
}

} // namespace

TEST_CASE("Kerberos needs a keytab and who answers for the kernel") {
  const std::string running = R"(, "/proc": {"kind": "directory", "names": ["20"]},
    "/proc/20/comm": {"kind": "file", "content": "gssproxy\n"},
    "/proc/20/ns/net": {"kind": "symlink", "link_target": "net:[7]"})";
  CHECK(lacking("rw,sec=sys", "").empty());
  CHECK(
      lacking("rw,sec=krb5p:sys", "") ==
      Lines{
          "SF155 `sec=krb5` needs /etc/krb5.keytab on this host: clients cannot mount it by Kerberos",
          "SF155 `sec=krb5` needs gssproxy or rpc.svcgssd running on this host: clients cannot mount it by Kerberos"});
  CHECK(lacking("sec=krb5", running).size() == 1);
  CHECK(lacking("sec=krb5", running + R"(, "/etc/krb5.keytab": {"kind": "file"})").empty());
}

TEST_CASE("TLS needs tlshd, a certificate and a key of the server") {
  const std::string running = R"(, "/proc": {"kind": "directory", "names": ["20"]},
    "/proc/20/comm": {"kind": "file", "content": "tlshd\n"},
    "/proc/20/ns/net": {"kind": "symlink", "link_target": "net:[7]"})";
  const auto config = [](const std::string& path, const std::string& text) {
    return ", \"" + path + R"(": {"kind": "file", "content": ")" + text + "\"}";
  };
  const std::string both = "[authenticate.client]\\nx509.certificate=/c\\n[authenticate.server]\\n"
                           "x509.certificate = /etc/c.pem\\nx509.private_key=/etc/K.pem\\n";
  CHECK(lacking("rw,xprtsec=none", "").empty());
  CHECK(lacking("rw,xprtsec=none:tls", "", 1) ==
        Lines{"SF155 `xprtsec=tls` needs a kernel with TLS for NFS (CONFIG_NET_HANDSHAKE) on this host: clients cannot "
              "mount it by TLS",
              "SF155 `xprtsec=tls` needs tlshd running on this host: clients cannot mount it by TLS",
              "SF155 `xprtsec=tls` needs /etc/tlshd.conf on this host: clients cannot mount it by TLS"});
  CHECK(
      lacking("rw,xprtsec=mtls", running + config("/etc/tlshd.conf", "[authenticate.client]\\nx509.certificate=/c")) ==
      Lines{"SF155 `xprtsec=mtls` needs `x509.certificate` in [authenticate.server] of /etc/tlshd.conf on this host: "
            "clients cannot mount it by TLS",
            "SF155 `xprtsec=mtls` needs `x509.private_key` in [authenticate.server] of /etc/tlshd.conf on this host: "
            "clients cannot mount it by TLS"});
  const auto named = running + config("/etc/tlshd/config", both);
  CHECK(lacking("xprtsec=tls", named + R"(, "/etc/c.pem": {"kind": "missing"}, "/etc/K.pem": {"kind": "missing"})") ==
        Lines{"SF155 `xprtsec=tls` needs the certificate /etc/c.pem on this host: clients cannot mount it by TLS",
              "SF155 `xprtsec=tls` needs the private key /etc/K.pem on this host: clients cannot mount it by TLS"});
  const auto keys = [&](const std::string& mode) {
    return named + R"(, "/etc/c.pem": {"kind": "file", "mode": "0644"}, "/etc/K.pem": {"kind": "file", "mode": ")" +
           mode + "\"}";
  };
  CHECK(lacking("xprtsec=tls", keys("0600")).empty());
  CHECK(lacking("xprtsec=tls", keys("0640")) ==
        Lines{"SF155 others than root can read the private key /etc/K.pem of `xprtsec=tls`"});
  CHECK(lacking("xprtsec=tls", running + R"(, "/c": {"kind": "missing"})" +
                                   config("/etc/tlshd.conf", "[authenticate.server]\\nx509.certificate=/c\\n"
                                                             "x509.private_key=pkcs11:token=a")) ==
        Lines{"SF155 `xprtsec=tls` needs the certificate /c on this host: clients cannot mount it by TLS"});
}

#include "support/catch.hpp"
#include "sys/programs/isolation.hpp"
#include "sys/programs/process.hpp"

#include <csignal>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::sys;

namespace {

/// Of a shell in namespaces of its own; the test fails where there are none.
Completed in_namespaces(const std::string& script, Isolation isolation) {
  Command command;
  command.argv = {"sh", "-c", script};
  command.directory = "/";
  command.isolation = std::make_shared<const Isolation>(std::move(isolation));
  const auto completed = run_process(command);
  if (!completed)
    FAIL(completed.error().message);
  return *completed;
}

} // namespace

TEST_CASE("an isolated program sees other files, and all else as it is", "[fork]") {
  const auto seen = in_namespaces(
      "cat /etc/exports /etc/exports.d/x.exports /etc/hosts; test -s /etc/passwd && "
      "echo passwd; test -s /etc/ssl/openssl.cnf -o ! -d /etc/ssl && echo below",
      {{}, {{"/etc/exports", "one\n"}, {"/etc/exports.d/x.exports", "two\n"}, {"/etc/hosts", "three\n"}}, {}, ""});
  CHECK(seen.out == "one\ntwo\nthree\npasswd\nbelow\n");
  CHECK(seen.exit_code == 0);
}

TEST_CASE("an isolated program changes nothing of the host", "[fork]") {
  const std::string mine = "/tmp/sharefs-isolation-" + std::to_string(::getpid());
  const auto seen = in_namespaces("touch " + mine + "; cat /proc/net/dev | grep -c :; id -u; echo x >/var/lib/nfs/etab",
                                  {{"/var/lib/nfs"}, {}, {}, ""});
  CHECK(seen.err.find("Read-only file system") != std::string::npos);
  CHECK(seen.out == "1\n65534\n"); // `lo`, and nobody
  CHECK(::access(mine.c_str(), F_OK) != 0);
}

TEST_CASE("the file that an isolated program leaves behind is what it prints", "[fork]") {
  const Isolation isolation{{"/var/lib/nfs"}, {}, {}, "/var/lib/nfs/etab"};
  const auto left = in_namespaces("echo said; echo left >/var/lib/nfs/etab; exit 3", isolation);
  CHECK(left.out == "left\n");
  CHECK(left.err == "said\n");
  CHECK(left.exit_code == 3);
  CHECK(in_namespaces("true", isolation).exit_code == k_no_result);
  CHECK(in_namespaces("ln -s /etc/passwd /var/lib/nfs/etab", isolation).exit_code == k_no_result);
  // One that a signal has ended is known by it, whether it left something or not.
  CHECK(in_namespaces("exec python3 -c 'import ctypes; ctypes.string_at(0)'", isolation).exit_code == 128 + SIGSEGV);
  CHECK(in_namespaces("kill -9 $$; echo left >/var/lib/nfs/etab", {}).exit_code != 0);
}

TEST_CASE("an isolated program is ended with all that it has started", "[fork][kill][waits]") {
  Command command;
  command.argv = {"sh", "-c", "setsid sleep 1234567 & sleep 1234567"};
  command.isolation = std::make_shared<const Isolation>(Isolation{});
  command.deadline = std::chrono::milliseconds(500);
  const auto completed = run_process(command);
  REQUIRE(completed);
  CHECK(completed->timed_out);
  Command search;
  search.argv = {"pgrep", "-f", "sleep 1234567"};
  const auto left = run_process(search);
  REQUIRE(left);
  CHECK(left->out.empty());
}

#include "base/text.hpp"
#include "mounts/compare.hpp"
#include "mounts/options.hpp"
#include "mounts/profiles.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;
using sharefs::test::share;

namespace {

std::string decided(const MountPoint& request, const sys::NfsProbe* server) {
  const auto point = decide(request, server);
  REQUIRE(point.has_value());
  return format_options(point->options);
}

sys::NfsProbe server_at(const std::string& address, bool v4 = true) {
  auto probe = test::good_server();
  probe.address = address;
  probe.v4 = v4;
  return probe;
}

const auto k_v4 = server_at("10.77.0.1");

} // namespace

TEST_CASE("profiles by what the server answers") {
  const auto dead = test::dead_server();
  auto late = server_at("10.77.0.1", false); // version 4 did not answer in time: to pin version 3 would be a guess
  late.v4_unknown = true;
  const auto v3 = server_at("10.77.0.1", false), ipv6 = server_at("fd00::1");
  struct Row {
    const char* profile;
    const sys::NfsProbe* server;
    const char* options;
  };
  for (const auto& row : std::vector<Row>{
           {"safe", &k_v4, "rw,hard,nosuid,nodev,vers=4.2,proto=tcp,nconnect=4"},
           {"safe", &v3, "rw,hard,nosuid,nodev,vers=3,proto=tcp,nconnect=4"},
           {"safe", &ipv6, "rw,hard,nosuid,nodev,vers=4.2,proto=tcp6,nconnect=4"},
           {"safe", &dead, "rw,hard,nosuid,nodev"},
           {"safe", &late, "rw,hard,nosuid,nodev"},
           {"safe", nullptr, "rw,hard,nosuid,nodev"},
           {"recipe", &k_v4, "rw,bg,soft,nolock"},
           {"immutable", &k_v4, "ro,hard,nosuid,nodev,nocto,actimeo=600,vers=4.2,proto=tcp,nconnect=4"},
       }) {
    CAPTURE(row.profile, row.options);
    auto request = share();
    request.profile = row.profile;
    CHECK(decided(request, row.server) == row.options);
  }
}

TEST_CASE("the transport follows the address by which the server lets this host mount") {
  auto both = server_at("fd00::1");
  both.access = {{"/elsewhere", true, "", "fd00::1"}, {share().path, true, "", "10.77.0.1"}};
  CHECK(decided(share(), &both).find("proto=tcp,") != std::string::npos);
  both.access.back().address = "fd00::2";
  CHECK(decided(share(), &both).find("proto=tcp6") != std::string::npos);
  both.access.back() = {share().path, false, "access denied by server", ""};
  CHECK(decided(share(), &both).find("proto=tcp6") != std::string::npos);
  both.access.clear();
  CHECK(decided(share(), &both).find("proto=tcp6") != std::string::npos);
}

TEST_CASE("own options override the profile") {
  auto request = share();
  request.options = parse_options({"vers=3,nconnect=1,timeo=100"});
  CHECK(decided(request, &k_v4) == "rw,hard,nosuid,nodev,vers=3,proto=tcp,nconnect=1,timeo=100");
}

TEST_CASE("an unknown profile is reported with a suggestion") {
  auto request = share();
  request.profile = "saef";
  request.origin = "sharefs.yaml:7:3";
  const auto point = decide(request, &k_v4);
  REQUIRE_FALSE(point.has_value());
  CHECK(point.error().code == ErrorCode::config);
  CHECK(point.error().message == "sharefs.yaml:7:3: there is no mount profile `saef`");
  CHECK(point.error().hint.find("safe") != std::string::npos);
}

TEST_CASE("notes before a mount") {
  auto request = share();
  CHECK(mount_notes(*decide(request, &k_v4)).empty());
  request.profile = "recipe";
  const auto notes = mount_notes(*decide(request, &k_v4));
  REQUIRE(notes.size() == 4);
  CHECK(notes[0].starts_with("share: `bg`"));
  CHECK(notes[3].find("no version is pinned") != std::string::npos);
}

TEST_CASE("the options beside safe make a mount what it is now") {
  const auto beside = [](const std::string& super, const std::string& options = "rw,nosuid,nodev,relatime") {
    const auto mount = test::entry(super, options);
    const auto found = options_beside_safe(mount);
    auto point = test::share();
    point.options = parse_options(found);
    const auto server = test::good_server();
    const auto decided = decide(point, &server);
    REQUIRE(decided);
    CHECK_FALSE(has_faults(compare_options(decided->options, mount)));
    return join(found, " ");
  };
  CHECK(beside(test::k_v42_super).empty());
  CHECK(beside(test::k_v42_super, "rw,relatime") == "suid dev");
  CHECK(beside("ro,vers=4.1,hard,noac,proto=tcp,timeo=20,retrans=2,sec=krb5p,addr=10.77.0.1",
               "ro,nosuid,nodev,noexec") == "ro vers=4.1 noexec nconnect=1 noac timeo=20 sec=krb5p");
  CHECK(beside("rw,vers=3,rsize=1048576,soft,nolock,proto=udp,timeo=600,retrans=2,sec=sys,local_lock=all") ==
        "soft vers=3 proto=udp nconnect=1 nolock");
}

TEST_CASE("the options beside safe keep what fstab says, and what it means by silence") {
  const auto taken_over = [](const std::string& line) {
    auto point = test::share();
    point.options = parse_options(options_beside_safe(line));
    CHECK_FALSE(has_errors(check_options(point.options, "share")));
    const auto server = test::good_server();
    return format_options(decide(point, &server)->options);
  };
  CHECK(taken_over("defaults") == "rw,hard,suid,dev,vers=4.2,proto=tcp,nconnect=1");
  CHECK(taken_over("ro,soft,noexec,nfsvers=3,rsize=32768,timeo=600,sec=sys,_netdev,nofail,auto,x-systemd.automount") ==
        "ro,soft,suid,dev,nfsvers=3,proto=tcp,nconnect=1,noexec,rsize=32768,timeo=600,sec=sys");
  CHECK(taken_over("bg,nosuid,nconnect=8,nodev,mountport=20048") ==
        "rw,hard,nosuid,nodev,vers=4.2,proto=tcp,nconnect=8,bg,mountport=20048");
  CHECK(taken_over("user,exec") == "rw,hard,nosuid,nodev,vers=4.2,proto=tcp,nconnect=1,exec"); // mount(8): no suid
  CHECK(taken_over("group,dev,nouser") == "rw,hard,nosuid,dev,vers=4.2,proto=tcp,nconnect=1");
}

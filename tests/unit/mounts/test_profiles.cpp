#include "mounts/options.hpp"
#include "mounts/profiles.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;
using sharefs::test::share;

namespace {

std::string decided(MountPoint request, const ServerFacts& server) {
  const auto point = decide(request, server);
  REQUIRE(point.has_value());
  return format_options(point->options);
}

const ServerFacts k_v4{.known = true, .v4 = true};

} // namespace

TEST_CASE("profiles by what the server answers") {
  struct Row {
    const char* profile;
    ServerFacts server;
    const char* options;
  };
  const auto row = GENERATE(values<Row>({
      {"safe", k_v4, "rw,hard,nosuid,nodev,vers=4.2,proto=tcp,nconnect=4"},
      {"safe", {.known = true, .v4 = false}, "rw,hard,nosuid,nodev,vers=3,proto=tcp,nconnect=4"},
      {"safe", {.known = true, .v4 = true, .ipv6 = true}, "rw,hard,nosuid,nodev,vers=4.2,proto=tcp6,nconnect=4"},
      {"safe", {.known = true, .v4 = true, .this_host = true}, "rw,hard,nosuid,nodev,vers=4.2,proto=tcp"},
      {"safe", {}, "rw,hard,nosuid,nodev"},
      {"recipe", k_v4, "rw,bg,soft,nolock"},
      {"immutable", k_v4, "ro,hard,nosuid,nodev,nocto,actimeo=600,vers=4.2,proto=tcp,nconnect=4"},
  }));
  auto request = share();
  request.profile = row.profile;
  CHECK(decided(request, row.server) == row.options);
}

TEST_CASE("own options override the profile") {
  auto request = share();
  request.options = parse_options({"vers=3,nconnect=1,timeo=100"});
  CHECK(decided(request, k_v4) == "rw,hard,nosuid,nodev,vers=3,proto=tcp,nconnect=1,timeo=100");
}

TEST_CASE("an unknown profile is reported with a suggestion") {
  auto request = share();
  request.profile = "saef";
  request.origin = "sharefs.yaml:7:3";
  const auto point = decide(request, k_v4);
  REQUIRE_FALSE(point.has_value());
  CHECK(point.error().code == ErrorCode::config);
  CHECK(point.error().message == "sharefs.yaml:7:3: there is no mount profile `saef`");
  CHECK(point.error().hint.find("safe") != std::string::npos);
}

TEST_CASE("facts of a server") {
  auto probe = test::good_server();
  CHECK(server_facts(probe, {"10.77.0.2"}) == ServerFacts{true, true, false, false});
  CHECK(server_facts(probe, {"10.77.0.1"}).this_host);
  probe.address = "127.0.0.1";
  CHECK(server_facts(probe, {}).this_host);
  probe.address = "fd00::1";
  CHECK(server_facts(probe, {}).ipv6);
  CHECK_FALSE(server_facts(test::dead_server(), {}).known);
  // Version 4 did not answer in time: to pin version 3 would be a guess.
  probe.v4 = false;
  probe.v4_unknown = true;
  CHECK_FALSE(server_facts(probe, {}).known);
}

TEST_CASE("notes before a mount") {
  auto request = share();
  CHECK(notes_on(*decide(request, k_v4)).empty());
  request.profile = "recipe";
  const auto notes = notes_on(*decide(request, k_v4));
  REQUIRE(notes.size() == 4);
  CHECK(notes[0].starts_with("share: `bg`"));
  CHECK(notes[3].find("no version is pinned") != std::string::npos);
}

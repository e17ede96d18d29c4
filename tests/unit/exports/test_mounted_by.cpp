#include "exports/ask.hpp"
#include "exports/mounted_by.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"

using namespace sharefs;
using namespace sharefs::exports;
using Lines = std::vector<std::string>;

namespace {

constexpr const char* k_info = "clientid: 0x2f1c6a3b65f0a1d2\n"
                               "address: \"10.77.0.2:812\"\n"
                               "status: confirmed\n"
                               "name: \"Linux NFSv4.2 node1\"\n"
                               "minor version: 2\n";
constexpr const char* k_states =
    "- 0x01: { type: open, access: r-, deny: --, superblock: \"fe:10:131\", filename: \"a\", owner: \"x\" }\n"
    "- 0x02: { type: open, access: rw, deny: --, superblock: \"fe:10:132\", filename: \"b\", owner: \"x\" }\n"
    "- 0x03: { type: deleg, access: r, superblock: \"fe:10:132\", filename: \"b\" }\n"
    "- 0x04: { type: open, access: rw, deny: --, superblock: \"fe:20:132\", filename: \"type: open\", owner: \"x\" }\n";

Export exported(const std::string& directory, const std::string& client) {
  return make_export(directory, client, {}, {});
}

} // namespace

TEST_CASE("what nfsd says about a client of version 4") {
  const auto client = parse_version4(k_info, k_states);
  CHECK(client.address == "10.77.0.2");
  CHECK(client.version == "4.2");
  CHECK(client.open == std::map<std::string, std::size_t>{{"fe:10", 2}, {"fe:20", 1}});
  CHECK(parse_version4("address: \"[fd00::2]:812\"\nminor version: 0\n", "").address == "fd00::2");
  CHECK(parse_version4("", "- 0x1: { type: open, superblock: \"").open.empty()); // cut off
  CHECK(parse_version4("address:\naddress: \"\n", "type: open superblock: \"fe:1").address.size() < 2);
}

TEST_CASE("rmtab") {
  CHECK(parse_rmtab("10.77.0.2:/srv/share:0x00000001\nfd00::2:/a:b:0x00000002\nnode1:/x\n:/x:1\nodd\n\n") ==
        std::vector<RmtabLine>{{"10.77.0.2", "/srv/share"}, {"fd00::2", "/a:b"}});
}

TEST_CASE("who loses it is named: by address, network and name, and whoever may be meant by a wildcard") {
  HostFacts facts;
  facts.names["node2"] = {{"10.77.0.3"}, "node2"};
  sys::MountEntry root;
  root.target = "/";
  root.major = 0xfe;
  root.minor = 0x10;
  facts.mounts = sys::MountTable({root});
  MountedBy mounted;
  mounted.version4 = {parse_version4(k_info, k_states), {"10.77.0.3", "4.1", {}}};
  mounted.rmtab = {{"10.77.0.2", "/srv/share/below"}, {"node2", "/srv/share"}, {"10.77.0.2", "/srv/shared"}};
  const std::string four = "/srv/share is withdrawn from clients that have this server mounted by NFS 4 (which "
                           "directory, a server does not know): ";
  const std::string three = "/srv/share is withdrawn from clients that have it mounted by NFS 3 (by "
                            "/var/lib/nfs/rmtab, which may be out of date): ";
  const auto notes = [&](const std::string& client) {
    return notes_of_mounted({exported("/srv/share", client)}, mounted, facts);
  };
  CHECK(notes("10.77.0.2") == Lines{four + "10.77.0.2 (4.2, 2 files open)", three + "10.77.0.2"});
  CHECK(notes("node2") == Lines{four + "10.77.0.3 (4.1)", three + "node2"});
  CHECK(notes("10.77.0.0/24") ==
        Lines{four + "10.77.0.2 (4.2, 2 files open), 10.77.0.3 (4.1)", three + "10.77.0.2, node2"});
  CHECK(notes("@nodes") == notes("10.77.0.0/24"));
  CHECK(notes("10.99.0.0/24").empty());
  mounted.unknown = "no answer";
  CHECK(notes("10.99.0.0/24") == Lines{"there may be more clients of NFS 4 that have it mounted: no answer"});
  CHECK(notes_of_mounted({}, mounted, facts).empty());

  mounted.version4.assign(30, {"10.77.0.2", "4.2", {}});
  for (int i = 0; i < 30; ++i)
    mounted.version4[static_cast<std::size_t>(i)].address = "10.77.1." + std::to_string(i);
  CHECK(notes("10.77.1.0/24").at(0).ends_with(", and 10 more"));
}

TEST_CASE("the host's files are read; none is no client") {
  const test::TemporaryDirectory root;
  test::ScriptedSystem system(root.path());
  CHECK(read_mounted(system) == MountedBy{});
  root.write("/proc/fs/nfsd/clients/3/info", k_info);
  root.write("/proc/fs/nfsd/clients/3/states", k_states);
  root.write("/proc/fs/nfsd/clients/4/info", k_info);
  root.write("/var/lib/nfs/rmtab", "10.77.0.2:/srv/share:0x00000001\n");
  const auto mounted = read_mounted(system);
  CHECK(mounted.version4 == std::vector<Version4Client>{parse_version4(k_info, k_states), parse_version4(k_info, "")});
  CHECK(mounted.rmtab == std::vector<RmtabLine>{{"10.77.0.2", "/srv/share"}});
  CHECK(mounted.unknown.empty());
}

TEST_CASE("what a reload would drop with these files") {
  const auto etab = parse_etab("/a\t10.0.0.2(rw)\n/a\t10.0.0.3(rw)\n/b\t*(ro)\n");
  const auto dropped = dropped_by(what_the_text_says({parse("/a 10.0.0.3(ro)\n", "f")}, {}), etab, {});
  REQUIRE(dropped.size() == 2); // an entry with other rights stays
  CHECK(dropped[0].client == "10.0.0.2");
  CHECK(dropped[1].directory == "/b");
  CHECK(dropped_by(what_the_text_says({parse("/a 10.0.0.0/24(rw) 10.0.0.2(rw) 10.0.0.3(rw)\n/b *(rw)\n", "f")}, {}),
                   etab, {})
            .empty());
}

TEST_CASE("two hosts with one name are seen by their addresses") {
  const std::vector<ClientName> own{{"Linux NFSv4.2 node1", "10.0.0.2"},
                                    {"Linux NFSv4.2 node2", "10.0.0.3"},
                                    {"Linux NFSv4.2 node1", "10.0.0.2"},
                                    {"Linux NFSv4.1 node2", "10.0.0.2"}};
  CHECK(diagnose_client_names(own).empty());
  auto cloned = own;
  cloned.push_back({"Linux NFSv4.2 node1", "fd00::3"});
  const auto found = diagnose_client_names(cloned);
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "SF247");
  CHECK(found[0].subject == "Linux NFSv4.2 node1");
  CHECK(found[0].message.find("10.0.0.2, fd00::3") != std::string::npos);
}

// The traps of exports(5), each with its place. What exportfs does with them was tried with nfs-utils 2.6.2.
#include "support/catch.hpp"
#include "unit/exports/told.hpp"

#include <cerrno>

using namespace sharefs;
using namespace sharefs::exports;
using Lines = std::vector<std::string>;

TEST_CASE("clients that are not what they look like") {
  struct Case {
    std::string text;
    Lines told;
  };
  const auto row = GENERATE(values<Case>({
      {"/a h(rw) 10.0.0.1(rw) 10.0.0.0/8(rw) *.lab(rw) @g(rw) 2001:db8::/64(rw)", {}},
      {"/a 192.168.16.11/22(rw)", {"SF103 warning 1:4"}},
      {"/a 10.0.0.0/0(rw)", {"SF104 error 1:4"}},
      {"/a 10.0.0.0/33(rw)", {"SF105 error 1:4"}},
      {"/a node/24(rw)", {"SF105 error 1:4"}},
      {"/a 10.0.0.300(rw)", {"SF105 error 1:4"}},
      {"/a 10.4(rw)", {"SF105 warning 1:4"}},
      {"/a 10.0.0.1/255.0.255.0(rw)", {"SF105 warning 1:4"}},
      {"/a 10.0.0.1,10.0.0.2(rw)", {"SF112 error 1:4"}},
      {"/a **(rw,no_root_squash,insecure)", {"SF120 error 1:4"}},                          // each host that has a name
      {"/a 0.0.0.0/0.0.0.0(rw,no_root_squash)", {"SF104 error 1:4", "SF119 warning 1:4"}}, // each address
      {"/a *(ro) *(rw,no_root_squash,insecure)", {"SF115 error 1:10"}},               // exportfs ignores the second
      {"/a h(bad)\n/b *(rw,no_root_squash)", {"SF107 error 1:6", "SF111 error 2:1"}}, // not read
      {"/a [fe80::1](rw)", {"SF113 error 1:4"}},
      {"/a [fe80::]/64(rw)", {"SF113 error 1:4"}},
      {"/a node[1-3].lab(rw)", {}},
      {"/a 10.0.0.*(rw)", {"SF114 warning 1:4"}},
      {"a h(rw)", {"SF118 error 1:1"}},
      {"/a *(rw,no_root_squash)", {"SF119 warning 1:4"}},
      {"/a *(rw,no_root_squash,insecure)", {"SF120 error 1:4"}},
      {"/a *(ro,no_root_squash,insecure)", {"SF119 warning 1:4"}},
      {"/a *(rw,no_root_squash,all_squash,insecure)", {}},
      {"/a *(rw,no_root_squash,insecure,sec=krb5)", {}},
      {"/a 10.0.0.0/8(rw,no_root_squash,insecure)", {}},
      {"/a *(rw,anonuid=0,insecure)", {"SF120 error 1:4"}}, // root is squashed to root
      {"/a *(rw,anonuid=0)", {"SF119 warning 1:4"}},
      {"/a *(rw,anonuid=0,no_root_squash)", {"SF119 warning 1:4"}},
      {"/a *(rw,all_squash,anonuid=0)", {"SF137 warning 1:4"}},
      {"/a 10.0.0.0/8(rw,all_squash,anongid=0)", {"SF137 warning 1:4"}},
      {"/a *(ro,all_squash,anonuid=0)", {}},
      {"/a *(rw,all_squash,anonuid=1000)", {}},
      {"/a h(rw,all_squash,anonuid=0)", {}}, // one host that somebody named
      {"/a h(rw,sync,ro)", {}},              // the table has what counts
      {"/a h(bad)\n/b 10.0.0.1/8(rw)", {"SF107 error 1:6", "SF111 error 2:1", "SF103 warning 2:4"}},
  }));
  CAPTURE(row.text);
  CHECK(told(diagnoses_of(row.text)) == row.told);
}

TEST_CASE("what is said of odd clients is true of their kind") {
  const auto message = [](const std::string& client) { return diagnoses_of("/a " + client + "(rw)").front().message; };
  CHECK(message("h,i").ends_with("exportfs drops it, mostly silently"));
  CHECK(message("@g,@h").ends_with("it is exported, and no client matches it"));
  CHECK(message("10.0.0.0/0").ends_with("(on x86 it means the one address)"));
  CHECK(message("2001:db8::1/0").ends_with("(on x86 it means the first 32 bits)"));
}

TEST_CASE("host bits: the real range and count are told") {
  const auto found = diagnoses_of("/mnt 192.168.16.11/22(rw)");
  REQUIRE(found.size() == 1);
  CHECK(found[0].message ==
        "`192.168.16.11/22` is not one host but the network 192.168.16.0-192.168.19.255: 1,024 addresses");
  CHECK(found[0].hint == "write `192.168.16.11` for the host, or `192.168.16.0/22` for the network");
}

TEST_CASE("a wildcard of addresses: the network is proposed") {
  const auto hint = [](const std::string& client) { return diagnoses_of("/a " + client + "(rw)").front().hint; };
  CHECK(hint("10.0.0.*") == "write `10.0.0.0/24`");
  CHECK(hint("10.0.*.*") == "write `10.0.0.0/16`");
  CHECK(hint("10.*.0.*") == "write the network, as `192.168.1.0/24`");
  CHECK(hint("10.0.0.1?") == "write the network, as `192.168.1.0/24`");
}

TEST_CASE("entries against each other") {
  struct Case {
    std::string text;
    Lines told;
  };
  const auto row = GENERATE(values<Case>({
      {"/a h(rw) H(rw)", {"SF115 warning 1:10"}},
      {"/a h(rw)\n/a h(ro)", {"SF115 error 2:4"}},
      {"/a h(rw)\n/b h(ro)", {}},
      {"/a *(rw) (rw)", {"SF102 warning 1:10", "SF115 warning 1:10"}},
      {"/a 10.0.0.11/22(rw) 10.0.0.12/22(rw)", {"SF103 warning 1:4", "SF103 warning 1:21"}},
      {"/a 10.0.0.0/22(rw) 10.0.0.11/22(ro)", {"SF103 warning 1:20"}},
      {"/a 10.0.0.0/22(rw) 10.0.0.4/30(rw)", {}},
      {"/a 10.0.0.0/22(rw) 10.0.0.5(ro)", {}}, // a host goes before a network
      {"/a fe80::1(rw) FE80:0::1(rw)", {"SF115 warning 1:16"}},
      {"/a 10.0.0.0/22(rw) 10.0.0.5(rw)", {}},
      {"/a 10.0.0.0/22(rw)\n/b 10.0.0.5(ro)", {}},
      {"/a h(fsid=1)\n/b h(fsid=1)", {"SF117 error 2:4"}},
      {"/a h(fsid=1) i(fsid=1)", {}},
      {"/a h(fsid=1)\n/b h(fsid=1) i(fsid=0x1)", {"SF117 error 2:4"}}, // once for a directory
      {"/a h(fsid=0)\n/b h(fsid=root)", {"SF117 error 2:4"}},
  }));
  CAPTURE(row.text);
  CHECK(told(diagnoses_of(row.text)) == row.told);
}

TEST_CASE("what the host tells") {
  using Kind = sys::EntryKind;
  HostFacts facts;
  const auto add = [&](const std::string& path, Kind kind, const std::string& fs_type, const std::string& mount) {
    auto& found = facts.directories[path];
    found.path = found.resolved = path;
    found.kind = kind;
    found.fs_type = fs_type;
    found.mount = mount;
  };
  add("/data", Kind::directory, "ext4", "/data");
  add("/ram", Kind::directory, "tmpfs", "/ram");
  add("/layers", Kind::directory, "overlay", "/layers");
  add("/gone", Kind::missing, "ext4", "/");
  add("/file", Kind::file, "ext4", "/");
  add("/part", Kind::directory, "ext4", "/");
  add("/bind", Kind::directory, "ext4", "/bind");
  add("/sub", Kind::directory, "btrfs", "/sub");
  add("/closed", Kind::unknown, "", "");
  facts.directories["/closed"].error_number = EACCES;
  facts.mounts = *sys::MountTable::parse("20 1 0:5 / / rw - ext4 /dev/sda rw\n21 20 0:6 / /data rw - ext4 /dev/sdb rw\n"
                                         "22 20 0:7 / /ram rw - tmpfs tmpfs rw\n23 20 0:8 / /layers rw - overlay o rw\n"
                                         "24 20 0:5 /part /bind rw - ext4 /dev/sda rw\n"
                                         "25 20 0:9 /@sub /sub rw - btrfs /dev/sdc rw\n");
  facts.names["known"] = {{"10.0.0.1"}, "known"};
  facts.names["unknown"] = {};
  facts.names["@unknown"] = {};
  struct Case {
    std::string text;
    Lines told;
  };
  const auto row = GENERATE(values<Case>({
      {"/data known(rw)", {}},
      {"/not-asked not-asked(rw)", {}},
      {"/data unknown(rw)", {"SF122 error 1:7"}},
      {"/data @unknown(rw) @known(rw)", {"SF122 warning 1:7"}},
      {"/gone known(rw)", {"SF123 warning 1:1"}},
      {"/gone known(rw) h(rx) known(ro)", {"SF111 error 1:1", "SF123 warning 1:1", "SF107 error 1:19"}}, // said once
      {"/file known(rw)", {"SF123 error 1:1"}},
      {"/closed known(rw)", {"SF123 warning 1:1"}},
      {"/ram known(rw)", {"SF124 warning 1:6"}},
      {"/ram known(rw,fsid=7)", {}},
      {"/layers known(rw,fsid=7)", {"SF125 error 1:1"}},
      {"/part known(rw)", {"SF136 warning 1:1"}},
      {"/part known(rw,subtree_check)", {}}, // which looks at every file handle
      {"/bind known(rw)", {"SF136 warning 1:1"}},
      {"/sub known(rw)", {}},
  }));
  CAPTURE(row.text);
  CHECK(told(diagnoses_of(row.text, facts)) == row.told);
}

TEST_CASE("a directory whose file system is not mounted") {
  HostFacts facts;
  auto& found = facts.directories["/part/sub"];
  found.path = found.resolved = "/part/sub";
  found.kind = sys::EntryKind::directory;
  found.fs_type = "ext4";
  found.mount = "/";
  facts.mounts = *sys::MountTable::parse("20 1 0:5 / / rw - ext4 /dev/sda rw\n");
  CHECK(told(diagnoses_of("/part/sub h(rw)", facts)) == Lines{"SF136 warning 1:1"});
  facts.not_mounted["/part/sub"] = sys::parse_fstab("# disks\nUUID=x /part ext4 nofail 0 2\n").at(0);
  const auto said = diagnoses_of("/part/sub h(rw)", facts);
  REQUIRE(told(said) == Lines{"SF148 error 1:1"});
  CHECK(said[0].message.find("(/etc/fstab:2)") != std::string::npos);
  CHECK(said[0].hint.starts_with("`mount /part`;"));
}

TEST_CASE("diagnoses come in the order of the files and places") {
  const std::vector<ExportsFile> files{parse("/a 10.0.0.1/9(rw)\n/b 10.0.0.1/8(rw)", "one"),
                                       parse("/a 10.0.0.1/9(rw)", "two")};
  const auto found = diagnose(files, predict_from_text(files, {}), {});
  Lines subjects;
  for (const auto& diagnosis : found)
    subjects.push_back(diagnosis.subject);
  CHECK(subjects == Lines{"one:1:4", "one:2:4", "two:1:4", "two:1:4"});
}

TEST_CASE("an entry that was never text") {
  const auto codes = [](const std::string& client, const std::string& option) {
    auto one = exports::entry("/a", client, {option}, 3);
    one.line = {"y", 2, 3};
    return told(diagnose_entry(one, "anonuid=x"));
  };
  CHECK(codes("h", "rw").empty());
  CHECK(codes("h", "RW") == Lines{"SF107 error 3:5"});
  CHECK(codes("h", "anonuid=x") == Lines{"SF108 error 3:5"});
  CHECK(codes("h(rw)", "rw") == Lines{"SF129 error 2:3"});
}

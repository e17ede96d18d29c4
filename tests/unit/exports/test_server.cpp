#include "exports/diagnose.hpp"
#include "exports/server.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"

#include <algorithm>

using namespace sharefs;
using namespace sharefs::exports;
using Lines = std::vector<std::string>;

namespace {

/// What the plan runs: "nfsdcld", "rpc.nfsd 8 / rpc.nfsd 0" with its undo.
Lines tools(const ServerState& state) {
  plan::Plan plan;
  add_server_steps(state, "g", plan);
  Lines lines;
  for (const auto& step : plan.steps) {
    const auto& tool = std::get<plan::RunTool>(step.action);
    lines.push_back(shell_join(tool.argv) + (tool.undo.empty() ? "" : " / " + shell_join(tool.undo)));
  }
  return lines;
}

ServerState with_units(std::vector<Unit> units, int threads = 0) {
  ServerState state;
  state.systemd = true;
  state.threads = threads;
  state.units = std::move(units);
  return state;
}

const Unit k_socket_up{"rpcbind.socket", "loaded", "active", "enabled"};
const Unit k_server_down{"nfs-server.service", "loaded", "inactive", "disabled"};

ServerState probed(const std::string& json) {
  auto system = test::ScriptedSystem::from_json(json, "/nonexistent");
  REQUIRE(system);
  const auto state = probe_server(**system);
  REQUIRE(state);
  return *state;
}

constexpr const char* k_programs = R"(
  "/usr/sbin/exportfs": {"kind": "file"}, "/usr/sbin/rpc.nfsd": {"kind": "file"},
  "/usr/sbin/rpc.mountd": {"kind": "file"}, "/usr/sbin/rpcbind": {"kind": "missing"}, "/sbin/exportfs": {"kind": "missing"},
  "/sbin/rpc.nfsd": {"kind": "missing"}, "/sbin/rpc.mountd": {"kind": "missing"}, "/sbin/rpcbind": {"kind": "file"})";

} // namespace

TEST_CASE("without systemd: what does not run is started, in the order that avoids a grace period") {
  ServerState state;
  CHECK(tools(state) == Lines{"mount -t nfsd nfsd /proc/fs/nfsd",
                              "mount -t rpc_pipefs -o X-mount.mkdir sunrpc /run/rpc_pipefs", "nfsdcld", "rpcbind -w",
                              "rpc.statd", "rpc.nfsd 8 / rpc.nfsd 0", "rpc.mountd"});
  state.nfsd_mounted = state.pipefs_mounted = true;
  state.daemons = {"nfsdcld", "rpc.mountd", "rpcbind"};
  CHECK(tools(state) == Lines{"rpc.statd", "rpc.nfsd 8 / rpc.nfsd 0"});
}

TEST_CASE("a running server is left alone") {
  ServerState state;
  state.nfsd_mounted = true;
  state.threads = 8;
  state.daemons = {"nfsdcld", "rpc.mountd", "rpc.statd", "rpcbind"};
  CHECK(tools(state).empty());
  SECTION("one for version 4 only needs no portmapper, and may have another mountd") {
    state.version3 = false;
    state.daemons = {"nfsv4.exportd"};
    CHECK(tools(state).empty());
  }
  SECTION("but its mountd is started if it is gone") {
    state.daemons = {"rpc.statd", "rpcbind"};
    CHECK(tools(state) == Lines{"rpc.mountd"});
  }
}

TEST_CASE("a server that is to offer version 4 only is started without the portmapper") {
  ServerState state;
  state.nfsd_mounted = state.pipefs_mounted = true;
  state.version3 = false;
  CHECK(tools(state) == Lines{"nfsdcld", "rpc.nfsd 8 / rpc.nfsd 0", "rpc.mountd"});
  state.missing = {"rpc.mountd", "rpcbind"};
  CHECK(check_installed(state));
  CHECK(tools(state).back() == "nfsv4.exportd");
  state.missing = {"rpc.mountd", "nfsv4.exportd"};
  CHECK_FALSE(check_installed(state));
  state.version3 = true;
  state.missing = {"rpcbind"};
  CHECK_FALSE(check_installed(state));
}

TEST_CASE("whether version 3 is offered is asked of nfsconf") {
  const auto offers = [](const std::string& answer) {
    return probed(std::string(R"({"identity": {"systemd": false}, "entries": {
      "/proc": {"kind": "directory", "names": []}, )") +
                  k_programs + R"(}, "run": [{"argv": ["nfsconf", "--get", "nfsd", "vers3"], )" + answer + "}]}")
        .version3;
  };
  CHECK(offers(R"("exit_code": 1)")); // not set
  CHECK(offers(R"("out": "y\n")"));
  CHECK_FALSE(offers(R"("out": "N\n")"));
  CHECK_FALSE(offers(R"("out": "false\n")"));
}

TEST_CASE("what cannot be seen is not planned") {
  ServerState state;
  state.visible = false;
  plan::Plan plan;
  add_server_steps(state, "g", plan);
  CHECK(plan.steps.empty());
  CHECK(plan.notes.size() == 1);
}

TEST_CASE("with systemd: enabled and started, and taken back exactly") {
  struct Case {
    ServerState state;
    Lines tools;
  };
  const auto row = GENERATE(values<Case>({
      {with_units({k_socket_up, k_server_down}),
       {"systemctl enable --now nfs-server.service / systemctl disable --now nfs-server.service"}},
      {with_units({{"rpcbind.socket", "loaded", "inactive", "disabled"}, k_server_down}),
       {"systemctl enable --now rpcbind.socket / systemctl disable --now rpcbind.socket",
        "systemctl enable --now nfs-server.service / systemctl disable --now nfs-server.service"}},
      {with_units({{"rpcbind.service", "loaded", "inactive", "enabled"}, k_server_down}),
       {"systemctl start rpcbind.service / systemctl stop rpcbind.service",
        "systemctl enable --now nfs-server.service / systemctl disable --now nfs-server.service"}},
      {with_units({k_socket_up, {"nfs-kernel-server.service", "loaded", "inactive", "enabled"}}),
       {"systemctl start nfs-kernel-server.service / systemctl stop nfs-kernel-server.service"}},
      {with_units({k_socket_up, k_server_down}, 8),
       {"systemctl enable nfs-server.service / systemctl disable nfs-server.service"}},
      {with_units({k_socket_up, {"nfs-server.service", "loaded", "active", "enabled"}}, 8), {}},
      {with_units({k_socket_up, {"nfs-server.service", "loaded", "active", "enabled"}}, 0), // `rpc.nfsd 0` by hand
       {"systemctl restart nfs-server.service / systemctl stop nfs-server.service"}},
      {with_units({k_socket_up,
                   {"nfs-server.service", "loaded", "active", "enabled"},
                   {"nfs-mountd.service", "loaded", "failed", "static"}},
                  8),
       {"systemctl start nfs-mountd.service / systemctl stop nfs-mountd.service"}},
      {with_units(
           {{"rpcbind.socket", "masked", "inactive", "masked"}, {"nfs-server.service", "loaded", "active", "enabled"}},
           8),
       {}},
  }));
  CHECK(tools(row.state) == row.tools);
}

TEST_CASE("what is missing is named with the commands that install it") {
  ServerState state;
  CHECK(check_installed(state));
  state.missing = {"rpc.nfsd", "exportfs"};
  const auto checked = check_installed(state);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().code == ErrorCode::not_found);
  CHECK(checked.error().message == "`exportfs` is not installed on this host");
  CHECK(checked.error().hint.find("apt-get install nfs-kernel-server") != std::string::npos);
  CHECK(checked.error().hint.find("dnf install nfs-utils") != std::string::npos);
  CHECK_FALSE(check_installed(with_units({})));
  CHECK(check_installed(with_units({k_server_down})));
  const auto masked = check_installed(with_units({{"nfs-server.service", "masked", "inactive", "masked"}}));
  REQUIRE_FALSE(masked);
  CHECK(masked.error().hint == "run `systemctl unmask nfs-server.service`");
}

TEST_CASE("the server is looked at without systemd: processes of this network namespace only") {
  const auto state = probed(std::string(R"({"identity": {"systemd": false},
    "mountinfo": "20 1 0:5 / / rw - ext4 /dev/sda rw\n30 20 0:40 / /proc/fs/nfsd rw - nfsd nfsd rw\n",
    "entries": {)") + k_programs +
                            R"(,
      "/proc/fs/nfsd/threads": {"kind": "file", "content": "8\n"},
      "/proc/fs/nfsd/versions": {"kind": "file", "content": "-2 -3 +4 +4.1 +4.2\n"},
      "/proc": {"kind": "directory", "names": ["1", "20", "30", "self"]},
      "/proc/self/ns/net": {"kind": "symlink", "link_target": "net:[7]"},
      "/proc/1/comm": {"kind": "file", "content": "init\n"},
      "/proc/20/comm": {"kind": "file", "content": "rpc.mountd\n"},
      "/proc/30/comm": {"kind": "file", "content": "rpcbind\n"},
      "/proc/20/ns/net": {"kind": "symlink", "link_target": "net:[7]"},
      "/proc/30/ns/net": {"kind": "symlink", "link_target": "net:[8]"}}})");
  CHECK(state.missing == Lines{"nfsv4.exportd"});
  CHECK(state.threads == 8);
  CHECK_FALSE(state.version3);
  CHECK(state.nfsd_mounted);
  CHECK_FALSE(state.pipefs_mounted);
  CHECK(state.daemons == Lines{"rpc.mountd"});
}

TEST_CASE("the server is looked at with systemd") {
  const auto state = probed(std::string(R"({"identity": {"systemd": true},
    "mountinfo": "20 1 0:5 / / rw - ext4 /dev/sda rw\n",
    "run": [{"argv": ["systemctl", "show", "--property=Id,LoadState,ActiveState,UnitFileState", "nfs-server.service",
                      "nfs-kernel-server.service", "nfs-mountd.service", "rpcbind.socket", "rpcbind.service",
                      "rpc-statd.service"],
      "out": "Id=nfs-server.service\nLoadState=loaded\nActiveState=inactive\nUnitFileState=disabled\n\nId=nfs-server.service\nLoadState=loaded\nActiveState=inactive\nUnitFileState=alias\n\nId=nfs-mountd.service\nLoadState=not-found\nActiveState=inactive\nUnitFileState=\n\nId=rpcbind.socket\nLoadState=not-found\nActiveState=inactive\nUnitFileState=\n\nId=rpcbind.service\nLoadState=masked\nActiveState=inactive\nUnitFileState=masked\n\nId=rpc-statd.service\nLoadState=loaded\nActiveState=inactive\nUnitFileState=static\n"}],
    "entries": {)") + k_programs +
                            "}}");
  CHECK(state.threads == 0);
  CHECK(state.units == std::vector<Unit>{{"nfs-server.service", "loaded", "inactive", "disabled"},
                                         {"nfs-kernel-server.service", "loaded", "inactive", "alias"},
                                         {"rpcbind.service", "masked", "inactive", "masked"},
                                         {"rpc-statd.service", "loaded", "inactive", "static"}});
}

TEST_CASE("what does not run of a server is said, the worst first") {
  const Unit server{"nfs-server.service", "loaded", "active", "enabled"};
  const Unit mountd{"nfs-mountd.service", "loaded", "active", "static"};
  const auto said = [](const ServerState& state) {
    const auto found = diagnose_server(state);
    return found.empty() ? ""
                         : std::string(to_string(found[0].severity)) + ": " +
                               found[0].message.substr(0, found[0].message.find(" does not run"));
  };
  CHECK(said(with_units({k_socket_up, server, mountd}, 8)).empty());
  CHECK(said(with_units({k_socket_up, server, mountd})) == "error: the NFS server of this host");
  CHECK(said(with_units({k_socket_up, server, {"nfs-mountd.service", "loaded", "failed", "static"}}, 8)) ==
        "error: rpc.mountd");
  CHECK(said(with_units({{"rpcbind.socket", "loaded", "inactive", "enabled"}, server, mountd}, 8)) ==
        "warning: rpcbind");
  CHECK(said(with_units({k_socket_up, server, mountd, {"rpc-statd.service", "loaded", "failed", "static"}}, 8)) ==
        "warning: rpc.statd");
  CHECK(
      said(with_units({k_socket_up, server, mountd, {"rpc-statd.service", "loaded", "active", "static"}}, 8)).empty());
  // Masked: somebody has decided.
  CHECK(said(with_units({{"rpcbind.socket", "masked", "inactive", "masked"}, server, mountd}, 8)).empty());

  ServerState plain;
  plain.threads = 8;
  plain.daemons = {"rpc.mountd", "rpc.statd", "rpcbind"};
  CHECK(said(plain).empty());
  plain.daemons = {"rpc.mountd", "rpcbind"};
  CHECK(said(plain) == "warning: rpc.statd");
  plain.daemons = {"rpc.mountd"};
  CHECK(said(plain) == "warning: rpcbind");
  plain.version3 = false;
  CHECK(said(plain).empty());
  plain.daemons = {"nfsv4.exportd"};
  CHECK(said(plain).empty());
  plain.daemons.clear();
  CHECK(said(plain) == "error: rpc.mountd");
  plain.visible = false;
  CHECK(said(plain).empty());
}

TEST_CASE("an export that answers too early, whoever wrote it") {
  const auto found = diagnose_in_force(parse_etab("/a\t*(rw,async)\n/b\t*(rw,sync)\n/a\t10.0.0.0/24(ro,async)\n"), {});
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "SF145");
  CHECK(found[0].subject == "/a");
  CHECK(found[0].message.find("*, 10.0.0.0/24") != std::string::npos);
}

TEST_CASE("what is exported for writing on a file system that became read-only") {
  const auto table = sys::MountTable::parse("1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
                                            "2 1 8:2 / /a rw,relatime shared:2 - ext4 /dev/sdb1 ro,errors=remount-ro\n"
                                            "3 1 8:3 / /b ro,relatime shared:3 - ext4 /dev/sdc1 rw\n");
  REQUIRE(table);
  const auto etab = parse_etab("/a/sub\t*(rw,sync)\n/b\t*(rw,sync)\n/c\t*(rw,sync)\n/a/read\t*(ro,sync)\n");
  const auto found = diagnose_in_force(etab, *table);
  REQUIRE(found.size() == 2);
  CHECK(found[0].code == "SF147");
  CHECK(found[0].subject == "/a/sub");
  CHECK(found[0].message == "exported with `rw` to *, and its file system (mounted at /a) is read-only");
  CHECK(found[1].subject == "/b");
}

TEST_CASE("other file systems below an export, which its clients do not see") {
  const auto table = sys::MountTable::parse("1 0 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
                                            "2 1 8:2 / /srv rw - ext4 /dev/sdb1 rw\n"
                                            "3 2 8:3 / /srv/data rw - xfs /dev/sdc1 rw\n"
                                            "4 3 8:4 / /srv/data/inner rw - xfs /dev/sdd1 rw\n"
                                            "5 2 8:5 / /srv/own rw - xfs /dev/sde1 rw\n"
                                            "6 2 0:6 / /srv/proc rw - proc proc rw\n"
                                            "7 1 8:7 / /srv2 rw - xfs /dev/sdf1 rw\n");
  REQUIRE(table);
  const auto said = [&](const char* etab) {
    std::string text;
    for (const auto& one : diagnose_in_force(parse_etab(etab), *table))
      text += one.code + " " + one.subject + ": " + one.message + "\n" + one.hint + "\n";
    return text;
  };
  CHECK(said("/srv\t*(rw,sync)\n/srv/own\t*(rw,sync)\n") ==
        "SF149 /srv: /srv/data is mounted on this server below the export: * see the directory that lies under the "
        "mount, and write there\nadd `crossmnt` to the options of /srv, or export /srv/data, too\n");
  CHECK(said("/srv\t*(rw,sync)\n/srv/data\t*(rw,sync,crossmnt)\n").find("/srv/own is mounted") != std::string::npos);
  CHECK(said("/srv\t*(rw,sync,crossmnt)\n").empty());
  CHECK(said("/srv2\t*(rw,sync)\n/srv/own\t*(rw,sync)\n").empty());
}

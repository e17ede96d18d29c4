#include "boot_machine.hpp"
#include "mounts/boot_text.hpp"

using namespace sharefs;
using namespace sharefs::mounts;
using test::has_code;
using test::share;
namespace fs = std::filesystem;
using Machine = test::BootMachine;

TEST_CASE("each way makes one entry, switching takes the old one away, and none leaves nothing") {
  Machine machine;
  machine.put("/etc/fstab", "# mine\n/dev/sda1 / ext4 defaults 0 1");
  machine.put("/etc/rc.local", "#!/bin/sh\nfoo\nexit 0\n", 0755);
  const auto before = machine.etc();
  for (const auto way : {BootWay::unit, BootWay::fstab, BootWay::automount, BootWay::rc_local, BootWay::unit,
                         BootWay::automount, BootWay::fstab, BootWay::rc_local, BootWay::fstab}) {
    machine.apply(way);
    const auto entries = machine.entries();
    REQUIRE(entries.size() == 1);
    CHECK(entries[0].way == way);
    CHECK(entries[0].target == "/data/share");
    CHECK(entries[0].ours);
    const auto facts = read_boot_facts(machine.system);
    CHECK(diagnose_left_at_boot(facts, {share()}).empty());
    const auto left = diagnose_left_at_boot(facts, {});
    REQUIRE(left.size() == 1);
    CHECK((left[0].code == "SF249" && left[0].subject == "/data/share"));
  }
  machine.apply(BootWay::none);
  CHECK(machine.etc() == before);
}

TEST_CASE("auto is units where systemd runs, else rc.local") {
  Machine machine;
  machine.apply(BootWay::automatic);
  CHECK(machine.entries() == std::vector<BootEntry>{{{"/etc/systemd/system/data-share.mount", "storage1:/mnt/share",
                                                      "/data/share", "nfs", "rw,vers=4.2,nofail"},
                                                     BootWay::unit,
                                                     true}});
  CHECK(fs::read_symlink(machine.at("/etc/systemd/system/multi-user.target.wants/sharefs-data-share.service")) ==
        "/etc/systemd/system/sharefs-data-share.service");

  Machine old(false);
  fs::create_directories(old.at("/etc/rc.d")); // of the RHEL family
  old.apply(BootWay::automatic);
  CHECK(old.entries() ==
        std::vector<BootEntry>{{{"/etc/rc.d/rc.local:5", "storage1:/mnt/share", "/data/share", "nfs", "rw,vers=4.2"},
                                BootWay::rc_local,
                                true}});
  struct stat status{};
  REQUIRE(::stat(old.at("/etc/rc.d/rc.local").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0755);
  old.apply(BootWay::none);
  CHECK_FALSE(fs::exists(old.at("/etc/rc.d/rc.local")));
}

TEST_CASE("fstab without systemd needs no name of a unit") {
  Machine machine(false);
  auto point = share("share", "/data/" + std::string(260, 'x'));
  point.boot = BootWay::fstab;
  const auto plan = plan_boot(read_boot_facts(machine.system), read_boot_host(machine.system), {point});
  CHECK(plan.diagnoses.empty());
  CHECK(plan.plan.steps.size() == 1);
}

TEST_CASE("changed options change the unit, and systemd is told") {
  Machine machine;
  machine.apply(BootWay::unit);
  const auto plan = machine.plan(BootWay::unit, "ro,vers=4.2").plan;
  REQUIRE(plan.steps.size() == 3);
  const auto* write = std::get_if<plan::File>(&plan.steps[0].action);
  REQUIRE(write != nullptr);
  CHECK(write->path == "/etc/systemd/system/data-share.mount");
  CHECK(std::get<plan::RunTool>(plan.steps[1].action).silent);
  CHECK(std::get<plan::RunTool>(plan.steps[2].action).argv == Argv{"systemctl", "daemon-reload"});
}

TEST_CASE("systemd makes units of fstab's lines, and reads them again where only a line has changed") {
  Machine machine;
  machine.apply(BootWay::fstab);
  const auto steps = machine.plan(BootWay::fstab, "ro,vers=4.2").plan.steps;
  REQUIRE(steps.size() == 2);
  CHECK(std::get<plan::File>(steps[0].action).path == "/etc/fstab");
  CHECK(std::get<plan::RunTool>(steps[1].action).argv == Argv{"systemctl", "daemon-reload"});
}

TEST_CASE("units that systemd did not understand are not enabled by the next run, without being asked again") {
  Machine machine;
  for (const auto& step : machine.plan(BootWay::unit).plan.steps)
    if (std::holds_alternative<plan::File>(step.action)) // then the check failed
      REQUIRE(plan::apply_action(step.action, machine.system));
  const auto steps = machine.plan(BootWay::unit).plan.steps;
  REQUIRE(steps.size() == 3);
  const auto* verify = std::get_if<plan::RunTool>(&steps[0].action);
  REQUIRE(verify != nullptr);
  CHECK(verify->argv == Argv{"systemd-analyze", "verify", "--recursive-errors=no",
                             "/etc/systemd/system/data-share.mount", "/etc/systemd/system/sharefs-data-share.service"});
  CHECK(std::holds_alternative<plan::Link>(steps[1].action));
}

TEST_CASE("who waits for a mount is stopped before its unit goes") {
  for (const auto& [way, unit] : {std::pair{BootWay::unit, "sharefs-data-share.service"},
                                  std::pair{BootWay::automount, "data-share.automount"}}) {
    Machine machine;
    machine.apply(way);
    const auto steps = machine.plan(BootWay::none).plan.steps;
    const auto stop = std::ranges::find(
        steps, plan::Action(plan::RunTool{{"systemctl", "stop", unit}, {"systemctl", "daemon-reload"}}),
        &plan::Step::action);
    REQUIRE(stop + 1 < steps.end());
    const auto* removed = std::get_if<plan::File>(&stop[1].action);
    REQUIRE(removed != nullptr);
    CHECK(removed->path == std::string("/etc/systemd/system/") + unit);
  }
}

TEST_CASE("what others mount at boot is left, and said") {
  const auto stands = [](const std::string& path, const std::string& text, const std::string& origin) {
    Machine machine;
    machine.put(path, text, 0755);
    if (path.ends_with(".mount"))
      fs::create_symlink(path, machine.at("/etc/systemd/system/multi-user.target.wants/data-share.mount"));
    const auto plan = machine.plan(BootWay::unit);
    CHECK(plan.plan.empty());
    REQUIRE(plan.diagnoses.size() == 1);
    CHECK(plan.diagnoses[0].code == "SF234");
    CHECK(plan.diagnoses[0].message.starts_with(origin + " mounts /data/share at boot already"));
  };
  stands("/etc/fstab", "\nstorage1:/mnt/share /data/share/ nfs defaults 0 0\n", "/etc/fstab:2");
  stands("/etc/systemd/system/data-share.mount", "[Mount]\nWhat=storage1:/mnt/share\n",
         "/etc/systemd/system/data-share.mount");
  stands("/etc/rc.local", "#!/bin/sh\nmount -t nfs -o bg s:/x /data/share &\n", "/etc/rc.local:2");

  Machine harmless;
  harmless.put("/etc/fstab", "s:/x /data/share nfs noauto 0 0\ns:/x /data/shared nfs defaults 0 0\n");
  harmless.put("/etc/rc.local", "#!/bin/sh\n# mount s:/x /data/share\numount s:/x /data/share\n", 0755);
  CHECK(harmless.plan(BootWay::unit).diagnoses.empty());
  const auto beside = harmless.plan(BootWay::fstab); // a second line of fstab for the same directory would not count
  CHECK(beside.plan.empty());
  REQUIRE(beside.diagnoses.size() == 1);
  CHECK(beside.diagnoses[0].message == "/etc/fstab:1 has a line for /data/share that does not mount it at boot "
                                       "(noauto): nothing was added to it");
}

TEST_CASE("an rc.local that is switched off is not switched on with all that is in it") {
  Machine machine(false);
  machine.put("/etc/rc.local", "#!/bin/sh\nrm -rf /tmp/x\nexit 0\n");
  const auto plan = machine.plan(BootWay::automatic);
  CHECK(plan.plan.empty());
  CHECK(has_code(plan.diagnoses, "SF235"));

  machine.put("/etc/rc.local", "#!/bin/bash\n# comment\ntouch /var/lock/subsys/local\n"); // as RHEL ships it
  machine.apply(BootWay::automatic);
  struct stat status{};
  REQUIRE(::stat(machine.at("/etc/rc.local").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0755);
}

TEST_CASE("an rc.local that was there is never deleted") {
  Machine machine(false);
  machine.put("/etc/rc.local", "#!/bin/sh\nexit 0\n", 0755);
  const auto before = machine.etc();
  machine.apply(BootWay::automatic);
  machine.apply(BootWay::none);
  CHECK(machine.etc() == before);
}

TEST_CASE("only network file systems that are mounted at boot are expected") {
  Machine machine;
  machine.put("/etc/fstab",
              "/dev/sdb1 /disk ext4 defaults 0 0\ns:/x /my\\040a nfs4 defaults 0 0\ns:/x /b nfs noauto 0 0\n"
              "swap none swap sw 0 0\nshort line\n");
  const auto unit = [&](const std::string& name, const std::string& text, bool enabled) {
    machine.put("/etc/systemd/system/" + name, text);
    if (enabled)
      fs::create_symlink("../" + name, machine.at("/etc/systemd/system/multi-user.target.wants/" + name));
  };
  unit("c.mount", "[Mount]\nWhat=s:/x\nType=nfs\n", true);
  unit("d.mount", "[Mount]\nWhat=s:/x\n", false);
  unit("e.mount", "[Mount]\nWhat=tmpfs\nType=tmpfs\n", true);
  unit("f.mount", "[Mount]\nWhat=s:/x\n", false);
  unit("f.automount", "[Automount]\n", true);
  unit("-.mount", "[Mount]\nWhat=s:/x\n", true);
  fs::create_symlink("/dev/null", machine.at("/etc/systemd/system/tmp.mount")); // masked
  machine.put("/etc/rc.local", "#!/bin/sh\nmount -t nfs s:/x /off\n", 0644);    // never run
  const auto entries = machine.entries();
  REQUIRE(entries.size() == 3);
  CHECK(entries[0] == BootEntry{{"/etc/fstab:2", "s:/x", "/my a", "nfs4", "defaults"}, BootWay::fstab});
  CHECK(entries[1] == BootEntry{{"/etc/systemd/system/c.mount", "s:/x", "/c", "nfs", ""}, BootWay::unit});
  CHECK(entries[2] == BootEntry{{"/etc/systemd/system/f.mount", "s:/x", "/f", "nfs", ""}, BootWay::automount});
}

TEST_CASE("each line has its own file system, and what is no NFS is not taken for it") {
  Machine machine;
  machine.put("/etc/fstab", "localhost:/vol /gv glusterfs defaults,_netdev 0 0\n"
                            "mgs@tcp:/fs /lustre lustre _netdev 0 0\n"
                            "u@h:/x /ssh fuse.sshfs noauto 0 0\n"
                            "remote:b /rc rclone ro 0 0\n"
                            "be/fs /weka weka net=udp,_netdev 0 0\n"
                            "//h/s /win cifs ro 0 0\n"
                            ":/ /ceph ceph name=a 0 0\n"
                            "tag /nine 9p trans=virtio 0 0\n"
                            "beegfs_nodev /bee beegfs rw 0 0\n"
                            "h:/unknown /unknown somefs rw 0 0\n"
                            "me#x /odd fuse rw 0 0\n"
                            "s:/a /a auto rw 0 0\n"
                            "s:/b /b nfs4 rw,noauto 0 0\n"
                            "s:/c /c nfs\n"
                            "UUID=1 /d ext4 noauto 0 0\n"
                            "tmpfs /t tmpfs rw 0 0\n");
  machine.put("/etc/systemd/system/g.mount", "[Mount]\nWhat=h:/g\nType=glusterfs\n");
  fs::create_symlink("../g.mount", machine.at("/etc/systemd/system/multi-user.target.wants/g.mount"));
  machine.put("/etc/rc.local",
              "#!/bin/sh\n"
              "mount -t glusterfs localhost:/vol /r1\n"
              "mount.lustre mgs@tcp:/fs /r2\n"
              "/sbin/mount.nfs4 s:/x /r3 -o ro && echo done\n"
              "mount --types=nfs s:/y /r4; echo\n"
              "mount -tcifs //h/s /r5\n"
              "mount s:/z /r6\n"
              "mount -o bind /a /r7\n"
              "mount /dev/sdb1 /r8\n",
              0755);
  const auto facts = read_boot_facts(machine.system);
  const auto named = [](const std::vector<BootEntry>& entries, bool nfs) {
    std::vector<std::string> targets;
    for (const auto& entry : entries)
      if (entry.is_nfs() == nfs)
        targets.push_back(entry.target);
    return targets;
  };
  CHECK(named(facts.entries, true) == std::vector<std::string>{"/a", "/c", "/r3", "/r4", "/r6"});
  CHECK(named(facts.entries, false) ==
        std::vector<std::string>{"/gv", "/lustre", "/rc", "/win", "/ceph", "/nine", "/bee", "/g", "/r1", "/r2", "/r5"});
  CHECK(named(facts.others, true) == std::vector<std::string>{"/b"});
  CHECK(named(facts.others, false) == std::vector<std::string>{"/ssh", "/weka", "/unknown", "/odd"});
  for (const auto& entry : facts.entries)
    if (entry.target == "/r3")
      CHECK(entry.options == "ro");
}

TEST_CASE("mounts of rc.local, as people write them") {
  Machine machine;
  machine.put("/etc/rc.local",
              "#!/bin/sh -e\n"
              "mount -o \"rw,soft\" \"s:/a\" '/a b' # mount s:/no /no\n"
              "mount -t nfs -o ro s:/c /c; mount s:/d /d >/dev/null 2>&1 &\n"
              "(sleep 30; sudo /bin/mount s:/e /e)&\n"
              "if ! mount s:/f /f; then umount /f; fi\n"
              "mount -a -t nfs\n"
              "mount $SERVER:/g /g\n",
              0755);
  std::vector<std::string> found;
  for (const auto& entry : read_boot_facts(machine.system).entries)
    found.push_back(entry.origin.substr(14) + " " + entry.source + " " + entry.target + " " + entry.options);
  CHECK(found == std::vector<std::string>{"2 s:/a /a b rw,soft", "3 s:/c /c ro", "3 s:/d /d ", "4 s:/e /e ",
                                          "5 s:/f /f ", "7 $SERVER:/g /g "});
}

TEST_CASE("root runs at boot only what nobody else can change, and what is there then") {
  if (::geteuid() != 0)
    return;
  Machine machine;
  machine.put("/opt/bin/sharefs", "", 0755);
  fs::create_directories(machine.at("/proc/self"));
  fs::create_symlink("/opt/bin/sharefs", machine.at("/proc/self/exe"));
  const auto refusal = [&] {
    const auto plan = machine.plan(BootWay::unit);
    CHECK(plan.plan.empty() == has_code(plan.diagnoses, "SF235"));
    return plan.diagnoses.empty() ? "" : plan.diagnoses[0].message;
  };
  CHECK(refusal().empty());
  const auto refused_with = [&](const std::string& path, uid_t owner, mode_t mode) {
    struct stat before{};
    REQUIRE(::stat(machine.at(path).c_str(), &before) == 0);
    REQUIRE(::chown(machine.at(path).c_str(), owner, 0) == 0);
    ::chmod(machine.at(path).c_str(), mode);
    const auto found = refusal();
    REQUIRE(::chown(machine.at(path).c_str(), 0, 0) == 0);
    ::chmod(machine.at(path).c_str(), before.st_mode & 07777U);
    CHECK(refusal().empty());
    return found;
  };
  CHECK(refused_with("/opt/bin/sharefs", 54321, 0755).find("it belongs to uid 54321") != std::string::npos);
  CHECK(refused_with("/opt/bin/sharefs", 0, 0775).find("has mode 0775") != std::string::npos);
  CHECK(refused_with("/opt/bin", 54321, 0755).find("`/opt/bin` belongs to uid 54321") != std::string::npos);
  CHECK(refused_with("/opt", 0, 0775).find("`/opt` has mode 0775") != std::string::npos);
  machine.system.machine.add_mount("storage1:/opt", "/opt", "nfs");
  CHECK(refusal().find("/opt/bin/sharefs lies on a share") != std::string::npos);
  machine.system.machine.remove_mount("/opt");
  fs::remove(machine.at("/opt/bin/sharefs")); // another version was installed meanwhile
  CHECK(refusal().find("No such file") != std::string::npos);
  CHECK(machine.plan(BootWay::automount).diagnoses.empty()); // does without
}

TEST_CASE("undo takes our entry away, whatever others have written since") {
  const auto write = [](const char* path, std::optional<std::string> before, std::string after) {
    plan::Plan plan;
    plan.add("at boot", "why", plan::File{path, std::move(before), std::move(after)});
    return plan;
  };
  const auto remove = [](const char* path, std::string before) {
    plan::Plan plan;
    plan.add("at boot", "why", plan::remove_file(path, std::move(before)));
    return plan;
  };
  const std::string ours = "s:/x /x nfs rw,x-sharefs.managed 0 0\n", other = "/dev/a / ext4 defaults 0 1\n";
  const std::string block = "# >>> sharefs /x\nmount s:/x /x\n# <<< sharefs /x\n";
  BootFacts facts;
  facts.rc_path = "/etc/rc.local";
  const auto undone = [&](plan::Plan plan) {
    rebase_boot_undo(facts, plan);
    return plan.steps.empty() ? std::optional<plan::Action>() : plan.steps[0].action;
  };
  SECTION("a line of fstab") {
    facts.fstab = "# edited\n" + other + ours + "tmpfs /t tmpfs rw 0 0"; // without an end of its last line
    CHECK(undone(write("/etc/fstab", other + ours, other)) ==
          plan::Action(plan::File{"/etc/fstab", facts.fstab, "# edited\n" + other + "tmpfs /t tmpfs rw 0 0"}));
    // The line itself was edited: it is still ours.
    facts.fstab = other + "s:/x /x nfs ro,x-sharefs.managed 0 0\n";
    CHECK(undone(write("/etc/fstab", other + ours, other)) ==
          plan::Action(plan::File{"/etc/fstab", facts.fstab, other}));
    // Somebody took our line away already, and wrote another.
    facts.fstab = other + "# edited\n";
    CHECK_FALSE(undone(write("/etc/fstab", other + ours, other)));
    // Undo of `umount --forget` puts it back.
    CHECK(undone(write("/etc/fstab", other, other + ours)) ==
          plan::Action(plan::File{"/etc/fstab", facts.fstab, other + "# edited\n" + ours}));
  }
  SECTION("a file of others stays, and one of ours alone goes") {
    facts.fstab = ours + "# mine\n";
    CHECK(undone(remove("/etc/fstab", ours)) == plan::Action(plan::File{"/etc/fstab", facts.fstab, "# mine\n"}));
    const auto bare =
        with_texts(BootFile::rc_local, with_texts(BootFile::rc_local, "", {{"/x", block}}), {{"/x", std::nullopt}});
    const auto made = with_texts(BootFile::rc_local, "", {{"/x", block}});
    facts.rc_local =
        with_texts(BootFile::rc_local, made, {{"/y", "# >>> sharefs /y\nmount s:/y /y\n# <<< sharefs /y\n"}});
    const auto left = undone(remove("/etc/rc.local", made)); // the block of another change stays
    REQUIRE(left);
    CHECK(std::get<plan::File>(*left).after->find("/y") != std::string::npos);
    CHECK(std::get<plan::File>(*left).after->find("/x") == std::string::npos);
    facts.rc_local =
        with_texts(BootFile::rc_local, bare, {{"/x", "# >>> sharefs /x\nmount -o ro s:/x /x\n# <<< sharefs /x\n"}});
    CHECK(undone(remove("/etc/rc.local", made)) == plan::Action(plan::remove_file("/etc/rc.local", *facts.rc_local)));
  }
  SECTION("a block of rc.local") {
    facts.rc_local = "#!/bin/sh\n# mine\n" + block + "echo hello\nexit 0";
    CHECK(undone(write("/etc/rc.local", "#!/bin/sh\n" + block + "exit 0\n", "#!/bin/sh\nexit 0\n")) ==
          plan::Action(plan::File{"/etc/rc.local", facts.rc_local, "#!/bin/sh\n# mine\necho hello\nexit 0"}));
  }
  SECTION("units of ours, not those that somebody wrote in their place") {
    const std::string path = "/etc/systemd/system/x.mount", text = std::string(k_unit_mark) + "...\n[Mount]\n";
    facts.units["x.mount"] = text + "# edited\n";
    CHECK(undone(remove(path.c_str(), text)) == plan::Action(plan::remove_file(path, text + "# edited\n")));
    facts.units["x.mount"] = "[Mount]\n";
    CHECK(undone(remove(path.c_str(), text)) == plan::Action(plan::remove_file(path, text))); // a conflict
  }
  SECTION("what nobody has edited, and other files") {
    facts.fstab = other + ours;
    CHECK(undone(write("/etc/fstab", other + ours, other)) ==
          plan::Action(plan::File{"/etc/fstab", other + ours, other}));
    CHECK(undone(write("/etc/x", "a", "b")) == plan::Action(plan::File{"/etc/x", "a", "b"}));
  }
}

TEST_CASE("a unit that is masked") {
  Machine machine;
  const auto mask = [&](const std::string& name) {
    fs::create_symlink("/dev/null", machine.at("/etc/systemd/system/" + name));
  };
  for (const auto* name : {"data-share.mount", "sharefs-data-share.service"}) {
    mask(name);
    const auto plan = machine.plan(BootWay::unit);
    CHECK(plan.plan.empty());
    REQUIRE(plan.diagnoses.size() == 1);
    CHECK(plan.diagnoses[0].code == "SF235");
    CHECK(plan.diagnoses[0].hint == fmt::format("`systemctl unmask {}`, then `sharefs mount share`", name));
    fs::remove(machine.at(std::string("/etc/systemd/system/") + name));
  }
  mask("data-share.automount");
  CHECK_FALSE(has_code(machine.plan(BootWay::unit).diagnoses, "SF235"));
}

TEST_CASE("what others mount at boot, and is not mounted") {
  Machine machine;
  machine.put("/etc/fstab", "old:/x /data/old nfs defaults 0 0\nold:/y /data/idle nfs noauto 0 0\n"
                            "/dev/sdb1 /disk ext4 defaults 0 2\nstorage1:/mnt/share /data/share nfs rw 0 0\n");
  const auto facts = read_boot_facts(machine.system);
  const auto found = diagnose_not_mounted_at_boot(facts, {share()}, {});
  REQUIRE(found.size() == 1);
  CHECK((found[0].code == "SF251" && found[0].subject == "/data/old" && found[0].fix == "sharefs probe old:/x"));
  CHECK(found[0].message == "/etc/fstab:1 mounts old:/x there at boot, and nothing is mounted");
  const auto table = test::table_of(test::nfs_line(50, 1, "/data/old", "old:/x", test::k_v42_super, "rw"));
  CHECK(diagnose_not_mounted_at_boot(facts, {share()}, table).empty());
  machine.put("/etc/fstab", "old:/x /data/old nfs port=20490 0 0\n");
  CHECK(diagnose_not_mounted_at_boot(read_boot_facts(machine.system), {}, {}).at(0).fix ==
        "sharefs probe --port=20490 old:/x");
}

TEST_CASE("what stands behind the exit of rc.local never runs") {
  Machine machine;
  machine.put("/etc/rc.local",
              "#!/bin/sh\nif a; then\nexit 0\nfi\nmount -t nfs old:/x /a\nexit 0 # done\nmount -t nfs old:/y /b\n",
              0755);
  const auto entries = machine.entries();
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].target == "/a");
}

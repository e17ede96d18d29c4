#include "mounts/boot_text.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;
using test::share;

namespace {

MountPoint decided(const std::string& target, const std::string& options = "rw,hard,vers=4.2") {
  auto point = share("share", target);
  point.options = parse_options({options});
  return point;
}

} // namespace

TEST_CASE("unit names are those of systemd-escape") {
  // Each pair as `systemd-escape --path` prints it.
  const std::vector<std::pair<std::string, std::string>> pairs{
      {"/", "-"},
      {"/data/share", "data-share"},
      {"/data/my share", "data-my\\x20share"},
      {"/data-1/x", "data\\x2d1-x"},
      {"/.hidden/.x", "\\x2ehidden-.x"},
      {"/d/\xc3\xa4", "d-\\xc3\\xa4"},
      {"/a/100%", "a-100\\x25"},
      {"/a:b_c.d", "a:b_c.d"},
  };
  for (const auto& [path, name] : pairs) {
    CHECK(escape_unit(path) == name);
    CHECK(unescape_unit(name) == path);
  }
}

TEST_CASE("a unit says what mount.nfs gets, and nothing that hangs a boot") {
  const auto texts = unit_texts(decided("/data/100% $x", "rw,bg,retry=5,_netdev,vers=4.2"), "/opt/a b/sharefs");
  REQUIRE(texts);
  CHECK(texts->mount.find("\nWhat=storage1:/mnt/share\nWhere=/data/100%% $x\nType=nfs\nOptions=rw,vers=4.2,nofail\n"
                          "TimeoutSec=30\n") != std::string::npos);
  CHECK(texts->mount.find("WantedBy") == std::string::npos); // the service starts it
  CHECK(texts->automount.find("[Automount]\nWhere=/data/100%% $x\n\n[Install]\n") != std::string::npos);
  CHECK(texts->service.find("\nExecStart=\"/opt/a b/sharefs\" probe --until-ready \"storage1:/mnt/share\"\n"
                            "ExecStart=systemctl start \"data-100\\\\x25\\\\x20\\\\x24x.mount\"\n") !=
        std::string::npos);
  for (const auto& text : {texts->mount, texts->automount, texts->service})
    CHECK(text.starts_with(k_unit_mark));
}

TEST_CASE("a directory of this host is bound at boot, by nobody who waits") {
  auto point = decided("/data/share", "ro,hard,nosuid");
  point.here = true;
  const auto texts = unit_texts(point, "/usr/bin/sharefs");
  REQUIRE(texts);
  CHECK(texts->mount.find("\nWhat=/mnt/share\nWhere=/data/share\nType=none\nOptions=bind,ro,nosuid,nofail\n") !=
        std::string::npos);
  CHECK(texts->mount.find("WantedBy=multi-user.target") != std::string::npos);
  CHECK(fstab_line(point, false) == "/mnt/share /data/share none bind,ro,nosuid,nofail,x-sharefs.managed 0 0");
  CHECK(rc_local_block(point, "/usr/bin/sharefs") == "# >>> sharefs /data/share\n"
                                                     "mount -o bind,ro,nosuid /mnt/share /data/share\n"
                                                     "# <<< sharefs /data/share\n");
}

TEST_CASE("what a unit, fstab or rc.local cannot say is refused") {
  for (const auto* target : {"/data/a\nb", "/data/a\\"})
    CHECK_FALSE(unit_texts(decided(target), "/usr/bin/sharefs"));
  std::string chinese = "/data/";
  for (int i = 0; i < 21; ++i)
    chinese += "\xe5\x85\xb1";
  CHECK_FALSE(unit_texts(decided(chinese), "/usr/bin/sharefs")); // 4 bytes for each of 63
  CHECK_FALSE(fstab_line(decided("/data/a\nb"), false));
  CHECK_FALSE(rc_local_block(decided("/data/a\nb"), "/usr/bin/sharefs"));
  CHECK_FALSE(rc_local_block(decided("/data/\xff"), "/usr/bin/sharefs")); // $'...' is not of sh
}

TEST_CASE("fstab keeps every other byte, and gets them all back") {
  const auto line = fstab_line(decided("/data/my share"), false);
  REQUIRE(line);
  CHECK(*line == "storage1:/mnt/share /data/my\\040share nfs "
                 "rw,hard,vers=4.2,_netdev,nofail,x-systemd.mount-timeout=30,x-sharefs.managed 0 0");
  const auto changed = fstab_line(decided("/data/my share", "ro"), true);
  REQUIRE(changed);
  CHECK(changed->find(" nfs ro,_netdev,nofail,bg,x-sharefs.managed ") != std::string::npos);
  for (const std::string before : {"", "# a\n\t/dev/sda1   /  ext4 defaults 0 1   # tail\nbroken line\n\n# end",
                                   "/dev/sda1 / ext4 defaults 0 1\n", "s:/x /data/my\\040share nfs ro 0 0\n"}) {
    const auto with = with_texts(BootFile::fstab, before, {{"/data/my share", *line}});
    CHECK(with.find(*line) != std::string::npos);
    CHECK(with.starts_with(before));
    CHECK(with_texts(BootFile::fstab, with, {{"/data/my share", *line}}) == with);
    const auto other = with_texts(BootFile::fstab, with + "\n#last", {{"/data/my share", *changed}});
    CHECK(other.find(*changed + "\n") != std::string::npos); // at the same place
    CHECK(other.find(*line) == std::string::npos);
    CHECK(with_texts(BootFile::fstab, with, {{"/data/my share", std::nullopt}}) == before);
  }
}

TEST_CASE("rc.local keeps every other byte, and its exit 0 stays last") {
  const auto block = rc_local_block(decided("/data/share"), "/usr/bin/sharefs");
  REQUIRE(block);
  CHECK(*block == "# >>> sharefs /data/share\n"
                  "(until grep -qF ' /data/share ' /proc/mounts; do\n"
                  "  /usr/bin/sharefs probe --until-ready storage1:/mnt/share >/dev/null && "
                  "mount -t nfs -o rw,hard,vers=4.2 storage1:/mnt/share /data/share || sleep 5\n"
                  "done) &\n"
                  "# <<< sharefs /data/share\n");
  const auto mine = with_texts(BootFile::rc_local, "", {{"/data/share", *block}});
  CHECK(mine == "#!/bin/sh\n# Made by sharefs, and deleted when nothing else is in it\n" + *block + "exit 0\n");
  CHECK(is_bare_rc_local(with_texts(BootFile::rc_local, mine, {{"/data/share", std::nullopt}})));
  CHECK_FALSE(has_other_commands(mine));
  for (const std::string before : {"#!/bin/sh -e\n# exit 0\ntouch /x\nexit 0\n", "#!/bin/bash\nfoo\n\nexit 0\n\n# end",
                                   "#!/bin/sh\nif a; then\nexit 0\nfi\nb", "#!/bin/sh\n", "#!/bin/sh\nexit 0\n"}) {
    const auto with = with_texts(BootFile::rc_local, before, {{"/data/share", *block}});
    CHECK(with_texts(BootFile::rc_local, with, {{"/data/share", *block}}) == with);
    CHECK(with_texts(BootFile::rc_local, with, {{"/data/share", std::nullopt}}) == before);
    CHECK_FALSE(is_bare_rc_local(before));
    CHECK(has_other_commands(with) == (before.size() > 20));
  }
  const auto placed = with_texts(BootFile::rc_local, "#!/bin/sh\nfoo\nexit 0\n# end\n", {{"/data/share", *block}});
  CHECK(placed == "#!/bin/sh\nfoo\n" + *block + "exit 0\n# end\n");
  CHECK(with_texts(BootFile::rc_local, "#!/bin/sh\nif a; then\nexit 0\nfi\nb", {{"/data/share", *block}})
            .ends_with("<<< sharefs /data/share"));
  CHECK(
      with_texts(BootFile::rc_local, "#!/bin/sh\n# >>> sharefs /data/share\nhalf\n", {{"/data/share", std::nullopt}}) ==
      "#!/bin/sh\n# >>> sharefs /data/share\nhalf\n"); // somebody deleted its end: not ours to cut
  const std::string half = "#!/bin/sh\n# >>> sharefs /data/share\nfoo\n";
  CHECK(with_texts(BootFile::rc_local, half + *block, {{"/data/share", std::nullopt}}) == half);
}

TEST_CASE("rc.local tries until it is mounted, and where it lies below another mount, until that is mounted") {
  const auto inner = rc_local_block(decided("/data/a b/x"), "/usr/bin/sharefs", "/data/a b");
  REQUIRE(inner);
  CHECK(inner->find("(until grep -qF ' /data/a\\040b/x ' /proc/mounts; do\n"
                    "  grep -qF ' /data/a\\040b ' /proc/mounts && /usr/bin/sharefs probe --until-ready ") !=
        std::string::npos);
  auto bound = decided("/data/a/x", "ro");
  bound.here = true;
  const auto waits = rc_local_block(bound, "/usr/bin/sharefs", "/data/a");
  REQUIRE(waits);
  CHECK(waits->find("\n  grep -qF ' /data/a ' /proc/mounts && mount -o bind,ro /mnt/share /data/a/x || sleep 5\n") !=
        std::string::npos);
}

TEST_CASE("our block stands before what ends rc.local, and one behind it is moved") {
  const auto block = rc_local_block(decided("/data/share"), "/usr/bin/sharefs");
  REQUIRE(block);
  for (const std::string end :
       {"exit 0 # all is done\n", "exit $?\n", "exec /sbin/x\n", "exit 0\nnever\n", "\texit\n"}) {
    const std::string begin = "#!/bin/sh\nif a; then\nexit 1\nfi\n";
    const auto with = with_texts(BootFile::rc_local, begin + end, {{"/data/share", *block}});
    CHECK(with == begin + *block + end);
    const auto behind = begin + end + *block;
    CHECK(with_texts(BootFile::rc_local, behind, {{"/data/share", *block}}) == with);
    CHECK(with_texts(BootFile::rc_local, with + *block, {{"/data/share", *block}}) == with);
    CHECK(with_texts(BootFile::rc_local, behind, {{"/data/share", std::nullopt}}) == begin + end);
    CHECK(with_texts(BootFile::rc_local, behind, {{"/data/x", std::nullopt}}) == behind);
  }
}

TEST_CASE("several mounts in one file: each keeps its place, and new ones come in order") {
  std::string fstab = "/dev/sda1 / ext4 defaults 0 1\n", rc_local = "#!/bin/sh\nfoo\nexit 0\n";
  const auto line = [](const std::string& target) { return *fstab_line(decided(target), false); };
  const auto block = [](const std::string& target) { return *rc_local_block(decided(target), "/usr/bin/sharefs"); };
  const auto lines = with_texts(BootFile::fstab, fstab, {{"/data/b", line("/data/b")}});
  const auto both = with_texts(BootFile::fstab, lines,
                               {{"/data/b", line("/data/b")},
                                {"/data/a/x", line("/data/a/x")},
                                {"/data/a", line("/data/a")},
                                {"/data/c", std::nullopt}});
  CHECK(both == lines + line("/data/a") + "\n" + line("/data/a/x") + "\n");
  CHECK(with_texts(BootFile::fstab, both,
                   {{"/data/b", std::nullopt}, {"/data/a/x", std::nullopt}, {"/data/a", std::nullopt}}) == fstab);
  const auto blocks =
      with_texts(BootFile::rc_local, rc_local, {{"/data/b ", block("/data/b ")}, {"/data/a", block("/data/a")}});
  CHECK(blocks == "#!/bin/sh\nfoo\n" + block("/data/a") + block("/data/b ") + "exit 0\n");
  CHECK(with_texts(BootFile::rc_local, blocks, {{"/data/a", std::nullopt}, {"/data/b ", block("/data/b ")}}) ==
        "#!/bin/sh\nfoo\n" + block("/data/b ") + "exit 0\n");
  CHECK(with_texts(BootFile::rc_local, blocks, {{"/data/a", std::nullopt}, {"/data/b ", std::nullopt}}) == rc_local);
}

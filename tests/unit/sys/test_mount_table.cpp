#include "sys/mounts/mount_table.hpp"

#include "sys/fs/walk.hpp"

#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::sys;

namespace {

MountTable table_of(const std::string& mountinfo) {
  auto table = MountTable::parse(mountinfo);
  REQUIRE(table);
  return *table;
}

std::string line(int id, int parent, const std::string& target, const std::string& type = "ext4",
                 const std::string& source = "/dev/sda1") {
  return std::to_string(id) + " " + std::to_string(parent) + " 0:" + std::to_string(id) + " / " + target +
         " rw,relatime shared:1 - " + type + " " + source + " rw\n";
}

int owner(const MountTable& table, std::string_view path) {
  const MountEntry* entry = table.owner_of(path);
  return entry == nullptr ? -1 : entry->id;
}

std::vector<int> ids(const std::vector<const MountEntry*>& entries) {
  std::vector<int> result;
  for (const MountEntry* entry : entries)
    result.push_back(entry->id);
  return result;
}

} // namespace

TEST_CASE("every field of a line is read") {
  const MountTable table =
      table_of("36 35 98:4294 /mnt1 /mnt2 rw,noatime shared:1 master:2 - nfs4 srv:/data rw,vers=4.2,hard\n"
               "37 36 0:5 / /plain rw - tmpfs tmpfs rw,size=4k\n");
  REQUIRE(table.entries().size() == 2);
  const MountEntry expected{36, 35, 98, 4294, "/mnt1", "/mnt2", "rw,noatime", "nfs4", "srv:/data", "rw,vers=4.2,hard"};
  CHECK(table.entries()[0] == expected);
  CHECK(table.entries()[1].options == "rw");
}

TEST_CASE("octal escapes of mount points") {
  struct Row {
    const char* raw;
    const char* target;
  };
  const Row row = GENERATE(Row{"/a\\040b", "/a b"}, Row{"/tab\\011nl\\012bs\\134", "/tab\tnl\nbs\\"},
                           Row{"/hash\\043", "/hash#"}, Row{"/caf\303\251", "/caf\303\251"},
                           Row{"/(deleted)", "/(deleted)"}, Row{"/deleted", "/deleted"}, Row{"/x\\0405", "/x 5"});
  INFO(row.raw);
  const MountTable table = table_of(line(1, 0, "/") + line(2, 1, row.raw));
  REQUIRE(table.entries().size() == 2);
  CHECK(table.entries()[1].target == row.target);
  CHECK(owner(table, row.target) == 2);
}

TEST_CASE("a mount point whose name ends as the kernel marks removed files is a mount like any other") {
  const MountTable table = table_of(line(1, 0, "/") + line(2, 1, "/a\\040(deleted)", "nfs4", "nas:/a"));
  CHECK(table.entries()[1].target == "/a (deleted)");
  CHECK(owner(table, "/a (deleted)/file") == 2);
  CHECK(table.hanging() == MountTargets{"/a (deleted)"});
}

TEST_CASE("a source may have spaces, be empty, or look like a tag") {
  CHECK(table_of(line(1, 0, "/", "cifs", "//srv/my\\040share")).entries()[0].source == "//srv/my share");
  CHECK(table_of(line(1, 0, "/", "9p", "UUID=x")).entries()[0].source == "UUID=x");
  CHECK(table_of(line(1, 0, "/", "nfs", "[fd00::1]:/d")).entries()[0].source == "[fd00::1]:/d");
  CHECK(table_of("1 0 0:1 / / rw - tmpfs  rw\n").entries()[0].source.empty());
}

TEST_CASE("optional fields, and a dash that is not the one behind them") {
  const MountTable table =
      table_of("1 0 0:1 / / rw - tmpfs - rw\n"
               "2 1 0:2 / /a\\040-\\040b rw propagate_from:2 unbindable - ext4 /dev/sda1 rw,x=a b");
  REQUIRE(table.entries().size() == 2);
  CHECK(table.entries()[0].source == "-");
  CHECK(table.entries()[1].target == "/a - b");
  CHECK(table.entries()[1].options == "rw");
  CHECK(table.entries()[1].super_options == "rw,x=a b"); // the last field goes to the end of the line
}

TEST_CASE("text that is no mount table is an error with the line") {
  CHECK(table_of("").entries().empty());
  CHECK(table_of("\n").entries().empty());
  const std::string text =
      GENERATE("hello\n", "1 2 3\n", "1 0 0:1 / / rw tmpfs tmpfs rw\n", "a b c:d / / rw - x y z\n",
               "1 0 01 / / rw - x y z\n", "1 0 0: / / rw - x y z\n", "1 0 0:1x / / rw - x y z\n",
               "99999999999 0 0:1 / / rw - x y z\n", "1 0 0:1 / a/b rw - x y z\n", "1 0 0:1 / / - x y z\n",
               "1 0 0:1 / / rw - \n", "1 0 0:1 / / rw - tmpfs rw\n", "1 0 0:1 / / rw -", "1 0 0:1 / / rw - x y ");
  INFO(text);
  const auto table = MountTable::parse(line(1, 0, "/") + text);
  REQUIRE_FALSE(table);
  CHECK(table.error().message.starts_with("mountinfo:2:"));
}

TEST_CASE("the owner of a path is found down the tree") {
  const MountTable table = table_of(line(1, 0, "/") + line(2, 1, "/data") + line(3, 2, "/data/share", "nfs4", "s:/x") +
                                    line(4, 1, "/data2") + line(5, 3, "/data/share/inner/deep"));
  struct Row {
    const char* path;
    int id;
  };
  const Row row = GENERATE(Row{"/", 1}, Row{"/etc/passwd", 1}, Row{"/data", 2}, Row{"/data/x", 2},
                           Row{"/data/share", 3}, Row{"/data/share/a/b", 3}, Row{"/data2/x", 4}, Row{"/data20", 1},
                           Row{"/data/share/inner", 3}, Row{"/data/share/inner/deep/x", 5}, Row{"/data/shared", 2});
  INFO(row.path);
  CHECK(owner(table, row.path) == row.id);
}

TEST_CASE("hidden mounts own nothing") {
  SECTION("a later mount on a directory above hides the earlier one") {
    const MountTable table = table_of(line(1, 0, "/") + line(2, 1, "/mnt/sub", "nfs") + line(3, 1, "/mnt"));
    CHECK(owner(table, "/mnt/sub/x") == 3);
    CHECK(table.at("/mnt/sub") == nullptr);
    CHECK(table.at("/mnt")->id == 3);
    CHECK(ids(table.below("/mnt")) == std::vector<int>{3, 2});
  }
  SECTION("mounts on top of each other") {
    const MountTable table =
        table_of(line(1, 0, "/") + line(2, 1, "/mnt", "nfs") + line(3, 2, "/mnt", "ext4") + line(4, 2, "/mnt/old"));
    CHECK(owner(table, "/mnt/x") == 3);
    CHECK(owner(table, "/mnt/old/x") == 3);
    CHECK(table.at("/mnt")->id == 3);
    CHECK(ids(table.below("/mnt")) == std::vector<int>{3, 4, 2});
  }
  SECTION("the same, with the ids the other way round") {
    const MountTable table = table_of(line(1, 0, "/") + line(9, 1, "/mnt", "nfs") + line(5, 9, "/mnt", "ext4"));
    CHECK(table.at("/mnt")->id == 5);
  }
}

TEST_CASE("bind mounts are mounts of their own") {
  const MountTable table = table_of(line(1, 0, "/") + "2 1 0:44 / /share rw - nfs4 s:/x rw\n" +
                                    "3 1 0:44 /sub/dir /home/a/data rw - nfs4 s:/x rw\n");
  CHECK(owner(table, "/home/a/data/f") == 3);
  CHECK(table.owner_of("/home/a/data/f")->root == "/sub/dir");
  CHECK(owner(table, "/home/a") == 1);
}

TEST_CASE("odd roots") {
  SECTION("the root's parent is itself") {
    const MountTable table = table_of(line(1, 1, "/") + line(2, 1, "/a"));
    CHECK(owner(table, "/a/b") == 2);
    CHECK(ids(table.below("/")) == std::vector<int>{2, 1});
  }
  SECTION("an initramfs below the real root") {
    CHECK(owner(table_of(line(1, 1, "/", "rootfs") + line(2, 1, "/") + line(3, 2, "/a")), "/a/b") == 3);
  }
  SECTION("something mounted over / later: lookups still start below it") {
    CHECK(owner(table_of(line(1, 0, "/") + line(2, 1, "/", "tmpfs") + line(3, 1, "/a")), "/a/b") == 3);
  }
  SECTION("a chroot that is no mount point: nothing is known about most paths") {
    CHECK(MountTable().owner_of("/a") == nullptr);
    CHECK(table_of(line(5, 4, "/proc")).owner_of("/a") == nullptr);
  }
  SECTION("a table that goes in circles") {
    const MountTable table = table_of(line(1, 0, "/") + line(2, 3, "/a") + line(3, 2, "/a") + line(1, 1, "/"));
    CHECK(owner(table, "/a/b") == 1);
    CHECK(table.below("/").size() == 4);
  }
}

TEST_CASE("mounts below a target come in an order in which they can be unmounted") {
  const MountTable table = table_of(line(1, 0, "/") + line(2, 1, "/d") + line(3, 2, "/d/a") + line(4, 3, "/d/a/b") +
                                    line(5, 2, "/d/z/y") + line(6, 1, "/data") + line(7, 5, "/d/z/y"));
  CHECK(ids(table.below("/d")) == std::vector<int>{7, 5, 4, 3, 2});
  CHECK(ids(table.below("/d/a/b")) == std::vector<int>{4});
  CHECK(table.below("/e").empty());
}

TEST_CASE("a table of a thousand mounts") {
  std::string text = line(1, 0, "/");
  for (int i = 2; i <= 1000; ++i)
    text +=
        line(i, i % 2 == 0 ? 1 : i - 1, (i % 2 == 0 ? "/m/" : "/m/" + std::to_string(i - 1) + "/") + std::to_string(i));
  const MountTable table = table_of(text);
  REQUIRE(table.entries().size() == 1000);
  CHECK(owner(table, "/m/998/999/x") == 999);
  CHECK(owner(table, "/m/998/99") == 998);
  CHECK(table.below("/m").size() == 999);
}

TEST_CASE("which file systems several hosts share") {
  for (const char* type :
       {"nfs", "nfs4", "lustre", "ceph", "cifs", "autofs", "fuse.sshfs", "fuse.juicefs", "fuseblk.sshfs"})
    CHECK(is_shared(type, {}));
  for (const char* type : {"ext4", "xfs", "tmpfs", "overlay", "fuse.gvfsd-fuse", "fuse", "nfsd", "", "fuse.", "zfs"})
    CHECK_FALSE(is_shared(type, {}));
  MountEntry entry;
  entry.fs_type = "nfs4";
  CHECK(is_nfs(entry));
  entry.fs_type = "nfsd";
  CHECK_FALSE(is_nfs(entry));
}

TEST_CASE("FUSE file systems whose files lie elsewhere are shared, by what each really shows in mountinfo") {
  struct Row {
    const char* type;
    const char* source;
    bool shared;
  };
  for (const Row& row : {
           Row{"fuse", "mountpoint-s3", true},
           Row{"fuse", "blobfuse2", true},
           Row{"fuse.blobfuse2", "blobfuse2", true},
           Row{"fuse.gcsfuse", "my-bucket", true},
           Row{"fuse", "my-bucket", true}, // goofys
           Row{"fuse", "my-bucket:prefix", true},
           Row{"fuse.geesefs", "my-bucket", true},
           Row{"fuse.rclone", "remote:dir", true},
           Row{"fuse", "remote:dir", true},
           Row{"fuse.s3fs", "s3fs", true},
           Row{"fuse", "s3fs", true},
           Row{"fuse.juicefs", "JuiceFS:vol", true},
           Row{"fuse", "JuiceFS:vol", true},
           Row{"fuse.alluxio-fuse", "alluxio-fuse", true},
           Row{"fuse", "alluxio-fuse", true},
           Row{"fuse.daos", "dfuse", true},
           Row{"fuse", "https://cloud.example/dav/", true}, // davfs2
           Row{"fuse.other", "s3://bucket/", true},
           Row{"fuse", "s3fs#bucket", true}, // fstab
           Row{"mount-s3", "s3://bucket/", true},
           Row{"fuseblk", "/dev/sda1", false}, // ntfs-3g
           Row{"fuse", "/dev/fuse", false},    // portals
           Row{"fuse", "/home/a", false},      // bindfs
           Row{"fuse", "encfs#/home/a", false},
           Row{"fuse", "Memory", false}, // fusepy: a class
           Row{"fuse", "none", false},
           Row{"fuse", "", false},
           Row{"fuse.mergerfs", "a:b", false},
           Row{"fuse.gvfsd-fuse", "gvfsd-fuse", false},
           Row{"fuse.fuse-overlayfs", "fuse-overlayfs", false},
           Row{"fuse.squashfuse", "/data/image.sif", false},
           Row{"fuse.lxcfs", "lxcfs", false},
           Row{"fusectl", "fusectl", false},
           Row{"fusectl", "none", false},
           Row{"ext4", "nfs:/x", false},
       }) {
    INFO(row.type << " " << row.source);
    CHECK(is_shared(row.type, row.source) == row.shared);
  }
}

TEST_CASE("whom flock excludes is said by the options in force") {
  struct Row {
    const char* type;
    const char* options;
    LockScope scope;
  };
  using enum LockScope;
  for (const Row& row : {
           Row{"nfs4", "rw,relatime,vers=4.2,hard,local_lock=none,addr=10.0.0.1", all_hosts},
           Row{"nfs", "rw,vers=4.1", all_hosts},
           Row{"nfs", "rw,relatime,vers=3,hard,mountproto=udp,local_lock=none,addr=10.0.0.1", all_hosts},
           Row{"nfs", "rw,vers=3,local_lock=posix", all_hosts},
           Row{"nfs", "rw,vers=3,soft,nolock,local_lock=all", this_host},
           Row{"nfs", "rw,vers=3,nolock", this_host}, // before 2.6.37
           Row{"nfs", "rw,vers=3,local_lock=flock", this_host},
           Row{"nfs", "rw,vers=3,local_lock=all", this_host},
           Row{"nfs", "rw", unknown},
           Row{"lustre", "rw,flock,lazystatfs", all_hosts},
           Row{"lustre", "rw,localflock", this_host},
           Row{"lustre", "rw,noflock", unknown},
           Row{"lustre", "rw", unknown},
           Row{"ceph", "rw,name=admin", all_hosts},
           Row{"cifs", "rw,vers=3.1.1,nobrl", this_host},
           Row{"cifs", "rw,vers=3.1.1", unknown},
           Row{"ocfs2", "rw,localflocks", this_host},
           Row{"ocfs2", "rw", all_hosts},
           Row{"fuse.juicefs", "rw", all_hosts},
           Row{"gpfs", "rw", unknown},
           Row{"beegfs", "rw", unknown},
           Row{"gfs2", "rw", unknown},
           Row{"9p", "rw", unknown},
           Row{"virtiofs", "rw", unknown},
           Row{"fuse.sshfs", "rw", unknown},
           Row{"fuse", "rw", unknown},
           Row{"autofs", "rw", unknown},
           Row{"ext4", "rw", this_host},
           Row{"tmpfs", "rw", this_host},
       }) {
    INFO(row.type << " " << row.options);
    MountEntry mount;
    mount.fs_type = row.type;
    mount.super_options = row.options;
    CHECK(lock_scope(mount) == row.scope);
  }
}

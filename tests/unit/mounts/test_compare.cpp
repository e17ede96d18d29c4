#include "mounts/compare.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;
using test::entry;
using test::k_v3_super;
using test::k_v42_super;

TEST_CASE("options that mountinfo spells otherwise are the same") {
  struct Row {
    const char *asked, *super, *options;
  };
  const auto row = GENERATE(values<Row>({
      {"rw,hard,vers=4.2,proto=tcp,nconnect=4", k_v42_super, "rw,relatime"},
      {"nfsvers=4", k_v42_super, "rw"},
      {"vers=4,minorversion=2", k_v42_super, "rw"},
      {"proto=tcp", "rw,vers=4.2,hard,proto=tcp6", "rw"},
      {"nolock", k_v42_super, "rw"}, // the kernel clears it on NFS 4
      {"nolock,soft", "rw,vers=3,soft,nolock,proto=tcp,local_lock=all", "rw"},
      {"rsize=1048576,wsize=262144", k_v42_super, "rw"}, // negotiated down
      {"timeo=600,retrans=2,sec=sys", k_v42_super, "rw"},
      {"actimeo=600", "rw,vers=4.2,acregmin=600,acregmax=600,acdirmin=600,acdirmax=600", "rw"},
      {"acregmin=3,acdirmin=30", k_v42_super, "rw"}, // defaults are not shown
      {"nocto,noac", "rw,sync,vers=3,acregmin=0,acregmax=0,acdirmin=0,acdirmax=0,nocto,noac", "rw"},
      {"lookupcache=pos", "rw,vers=3,lookupcache=pos", "rw"},
      {"bg,retry=5,_netdev,x-systemd.automount,intr", k_v42_super, "rw"},
      {"atime,defaults", k_v42_super, "rw,relatime"}, // the server keeps the times
      {"mountport=20048,mountproto=tcp", k_v3_super, "rw"},
      {"port=2049,port=0", k_v42_super, "rw"},
      {"ro", k_v42_super, "ro,relatime"}, // of the mount point, not of the superblock
      {"nosuid,nodev,noexec", k_v42_super, "rw,nosuid,nodev,noexec,relatime"},
      {"unknownoption", k_v42_super, "rw"},
      {"sec=krb5:sys", "rw,vers=4.2,hard,sec=sys", "rw"}, // one of them
      {"rsize=500", "rw,vers=4.2,hard,rsize=4096", "rw"}, // what the kernel takes instead
      {"dirsync,norelatime,nostrictatime", k_v42_super, "rw,relatime"},
  }));
  CAPTURE(row.asked);
  CHECK(describe(compare_options(parse_options({row.asked}), entry(row.super, row.options))).empty());
}

TEST_CASE("differences are told") {
  struct Row {
    const char *asked, *super, *options, *text;
  };
  const auto row = GENERATE(values<Row>({
      {"vers=4.2", k_v3_super, "rw", "vers=3 instead of vers=4.2"},
      {"vers=4.1", k_v42_super, "rw", "vers=4.2 instead of vers=4.1"},
      {"vers=4", k_v3_super, "rw", "vers=3 instead of vers=4"},
      {"hard", "rw,vers=3,soft", "rw", "soft instead of hard"},
      {"soft", k_v42_super, "rw", "hard instead of soft"},
      {"rw", k_v42_super, "ro,relatime", "ro instead of rw"},
      {"rw", "ro,vers=4.2", "rw,relatime", "ro instead of rw"},
      {"nolock", k_v3_super, "rw", "(lock) instead of nolock"},
      {"nocto", k_v42_super, "rw", "(cto) instead of nocto"},
      {"actimeo=600", "rw,vers=4.2,acregmin=600,acregmax=600,acdirmin=600", "rw",
       "(acdirmax=60) instead of actimeo=600"},
      {"actimeo=1", k_v42_super, "rw", "(acregmin=3),(acregmax=60),(acdirmin=30),(acdirmax=60) instead of actimeo=1"},
      {"actimeo=3,acregmax=60,acdirmax=60", k_v42_super, "rw", "(acdirmin=30) instead of actimeo=3"},
      {"rsize=65536", k_v42_super, "rw", "rsize=262144 instead of rsize=65536"},
      {"sec=krb5:krb5i", "rw,vers=4.2,hard,sec=sys", "rw", "sec=sys instead of sec=krb5:krb5i"},
      {"nosuid", k_v42_super, "rw,relatime", "(suid) instead of nosuid"},
      {"nosuid", k_v42_super, "rw,nosuid,noexec", "noexec instead of exec"}, // nobody asked for it
      {"soft,timeo=100", k_v42_super, "rw", "hard instead of soft, timeo=600 instead of timeo=100"},
  }));
  const auto differences = compare_options(parse_options({row.asked}), entry(row.super, row.options));
  CHECK(describe(differences) == row.text);
  CHECK(has_faults(differences));
}

TEST_CASE("nconnect is decided by the first mount: told, no fault") {
  const auto differences = compare_options(parse_options({"nconnect=8"}), entry(k_v42_super));
  REQUIRE(differences.size() == 1);
  CHECK(describe(differences) == "nconnect=4 instead of nconnect=8");
  CHECK_FALSE(has_faults(differences));
  CHECK_FALSE(has_faults(compare_options(parse_options({"noresvport"}), entry(k_v42_super))));
  CHECK(describe(compare_options(parse_options({"nconnect=4"}), entry(k_v3_super))) ==
        "(nconnect=1) instead of nconnect=4");
}

TEST_CASE("the same source under another name") {
  struct Row {
    const char *server, *path, *source, *address;
    bool same;
  };
  const auto row = GENERATE(values<Row>({
      {"storage1", "/mnt/share", "storage1:/mnt/share", "", true},
      {"Storage1", "/mnt/share/", "storage1:/mnt/share", "", true},
      {"10.77.0.1", "/mnt/share", "storage1:/mnt/share", "10.77.0.1", true},
      {"10.77.0.1", "/mnt/share", "storage1:/mnt/share", "10.77.0.9", true}, // addr= is what was written
      {"nas", "/mnt/share", "storage1:/mnt/share", "10.77.0.1", true},
      {"nas", "/mnt/share", "storage1:/mnt/share", "", true},           // cannot be told: in doubt the same
      {"nas", "/mnt/share", "storage1:/mnt/share", "10.77.0.9", false}, // another machine
      {"storage1", "/mnt/other", "storage1:/mnt/share", "10.77.0.1", false},
  }));
  CAPTURE(row.server, row.address);
  const MountPoint point{.name = "share", .server = row.server, .path = row.path, .target = "/data/share"};
  CHECK(same_source(point, entry(k_v42_super, "rw", row.source), row.address) == row.same);
}

TEST_CASE("a local disk is never the same source") {
  auto disk = entry("rw");
  disk.fs_type = "ext4";
  disk.source = "storage1:/mnt/share";
  CHECK_FALSE(same_source(test::point_with(""), disk, ""));
}

TEST_CASE("submounts that the kernel made belong to their parent") {
  const auto parent = entry(k_v42_super);
  auto child = parent;
  child.id = 51;
  child.parent = 50;
  child.target = "/data/share/sub";
  child.source = "storage1:/mnt/share/sub";
  CHECK(is_submount(parent, child));
  auto other = child;
  other.source = "storage1:/elsewhere";
  CHECK_FALSE(is_submount(parent, other));
  other = child;
  other.parent = 1;
  CHECK_FALSE(is_submount(parent, other));
}

TEST_CASE("options to mount the same again") {
  CHECK(remount_options(entry(k_v42_super)) == "rw,vers=4.2,rsize=262144,wsize=262144,hard,proto=tcp,nconnect=4,"
                                               "timeo=600,retrans=2,sec=sys");
  CHECK(remount_options(entry("rw,vers=3,soft,nolock,proto=tcp,local_lock=all,addr=10.77.0.1", "ro,nosuid,relatime")) ==
        "ro,vers=3,soft,nolock,proto=tcp,nosuid");
  CHECK(remount_options(entry("rw,vers=3,local_lock=flock")) == "rw,vers=3,local_lock=flock");
  // and what was mounted again shows no difference
  CHECK(compare_options(parse_options({remount_options(entry(k_v42_super))}), entry(k_v42_super)).empty());
}

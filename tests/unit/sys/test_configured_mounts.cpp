#include "sys/configured_mounts.hpp"

#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::sys;

TEST_CASE("a line of fstab: blanks in a path, no options, no mount point") {
  const auto lines = parse_fstab("# disks\n\nUUID=x /mnt/a\\040b/ ext4\n/dev/sdc none swap sw 0 0\n");
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].origin == "/etc/fstab:3");
  CHECK(lines[0].target == "/mnt/a b");
  CHECK(lines[0].options == "defaults");
  CHECK(hint_to_mount(lines[0]).starts_with("`mount '/mnt/a b'`;"));
}

TEST_CASE("a mount unit: the last value counts, and blanks around the equals sign do not") {
  const std::string path = "/etc/systemd/system/mnt-disk.mount";
  const auto unit = parse_mount_unit(
      path,
      "[Unit]\nWhatever=no\n#What=/dev/sda\n[Mount]\nWhat = /dev/sdb1\nWhere=/mnt/disk/\nOptions=rw\nOptions=ro\n");
  CHECK(unit.origin == path);
  CHECK(unit.source == "/dev/sdb1");
  CHECK(unit.target == "/mnt/disk");
  CHECK(unit.type.empty());
  CHECK(unit.options == "ro");
  CHECK(hint_to_mount(unit).starts_with("`systemctl start mnt-disk.mount`;"));
  CHECK(parse_mount_unit(path, "").target.empty()); // a masked unit
}

TEST_CASE("the entry of a file system that is not mounted") {
  const std::vector<ConfiguredMount> configured{{"/etc/fstab:1", "/dev/sdb1", "/mnt", "ext4", "defaults"}};
  const std::string root = "20 1 8:1 / / rw - ext4 /dev/sda rw\n";
  const auto table = *MountTable::parse(root);
  CHECK(find_unmounted(configured, table, "/mnt/share") == configured.data());
  CHECK(find_unmounted(configured, table, "/mnt") == configured.data());
  CHECK(find_unmounted(configured, table, "/mntx") == nullptr);
  const auto mounted = *MountTable::parse(root + "21 20 8:2 / /mnt rw - ext4 /dev/sdb1 rw\n");
  CHECK(find_unmounted(configured, mounted, "/mnt/share") == nullptr);
}

#include "exports/filesystem.hpp"
#include "support/catch.hpp"

using namespace sharefs::exports;

TEST_CASE("which file systems can be exported") {
  struct Case {
    std::string type, options;
    Exportable exportable;
  };
  const auto row = GENERATE(values<Case>({
      {"ext4", "rw", Exportable::yes},
      {"xfs", "", Exportable::yes},
      {"zfs", "", Exportable::yes},
      {"fuseblk", "", Exportable::yes}, // has a device
      {"tmpfs", "rw,size=1g", Exportable::wants_fsid},
      {"fuse.mergerfs", "", Exportable::needs_fsid},
      {"overlay", "rw,lowerdir=/a", Exportable::no},
      {"overlay", "rw,index=on,nfs_export=on", Exportable::wants_fsid},
      {"overlay", "rw,nfs_export=only", Exportable::no},
      {"nfs4", "", Exportable::no},
      {"hostfs", "", Exportable::no},
      {"proc", "", Exportable::no},
      {"something new", "", Exportable::yes},
  }));
  CAPTURE(row.type, row.options);
  const auto fact = file_system_fact(row.type, row.options);
  CHECK(fact.exportable == row.exportable);
  CHECK(fact.why.empty() == (row.exportable == Exportable::yes));
}

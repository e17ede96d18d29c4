#include "mounts/mount_point.hpp"
#include "mounts/state.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;

TEST_CASE("sources are parsed and formatted") {
  struct Row {
    const char* text;
    Source source;
  };
  const auto row =
      GENERATE(Row{"storage1:/mnt/share", {"storage1", "/mnt/share"}}, Row{"10.77.0.1:/", {"10.77.0.1", "/"}},
               Row{"[fe80::1]:/mnt", {"fe80::1", "/mnt"}}, Row{"[fe80::1%eth0]:/a:/b", {"fe80::1%eth0", "/a:/b"}},
               Row{"host:/with:/colon", {"host", "/with:/colon"}});
  CHECK(parse_source(row.text) == row.source);
  CHECK(format_source(row.source.server, row.source.path) == row.text);
}

TEST_CASE("odd sources") {
  CHECK(parse_source("host:relative") == Source{"host", "relative"});
  CHECK(parse_source("/dev/sda1") == Source{"", "/dev/sda1"});
  CHECK(parse_source("fe80::1:/mnt") == Source{"fe80::1", "/mnt"}); // as old tools wrote it
  CHECK(parse_source("") == Source{"", ""});
}

TEST_CASE("two spellings of one source") {
  CHECK(is_same_source("Storage1:/mnt/share/", "storage1:/mnt/share"));
  CHECK(is_same_source("[fe80::1]:/", "fe80::1:/"));
  CHECK_FALSE(is_same_source("storage1:/mnt/share", "storage1:/mnt/shares"));
  CHECK_FALSE(is_same_source("storage1:/mnt/share", "storage2:/mnt/share"));
}

TEST_CASE("a mount is called by its name, else by its target") {
  MountPoint point{.name = "share", .server = "10.77.0.1", .target = "/data/share"};
  CHECK(name_of(point) == "share");
  CHECK(server_of(point) == "10.77.0.1");
  point.name.clear();
  point.server_name = "storage1";
  CHECK(name_of(point) == "/data/share");
  CHECK(server_of(point) == "storage1");
}

TEST_CASE("the ports of a server") {
  const auto point = [](const std::string& options) {
    return MountPoint{.server = "s", .options = parse_options({options})};
  };
  CHECK(server_key(point("vers=3")) == "s");
  CHECK(server_key(point("port=0")) == "s");
  CHECK(server_key(point("port=20490")) == "s port 20490");
  CHECK(server_key(point("proto=rdma,port=20049")) == "s");
  CHECK(server_key(point("port=2049,mountport=20048")) == "s mountport 20048");
  CHECK(probe_command(point("port=2049,mountport=20048")) == "sharefs probe --mountport=20048 s");
  CHECK(server_key(point("mountport=20048")) == "s"); // mount.nfs asks the portmapper for the other port
}

TEST_CASE("the port of a mount that only the mount table knows") {
  sys::MountEntry mount;
  mount.source = "s:/x";
  mount.super_options = "rw,vers=4.2,hard,proto=tcp,port=20490,timeo=600";
  CHECK(server_key(point_without_options(mount)) == "s port 20490");
  mount.super_options = "rw,vers=4.2,hard,proto=rdma,port=20049,timeo=600";
  CHECK(server_key(point_without_options(mount)) == "s"); // a port of RDMA is no TCP port
}

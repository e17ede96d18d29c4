#include "sys/fs/mountstats.hpp"

#include "support/catch.hpp"

#include <optional>
#include <sstream>

using namespace sharefs::sys;

namespace {

TakeoversByTarget takeovers(const std::string& mountstats) {
  std::istringstream text(mountstats);
  return takeovers_in(text);
}

/// Of Linux 6.1, two connections; shortened.
constexpr const char* k_text = R"(device proc mounted on /proc with fstype proc
device server:/srv/a\040b mounted on /mnt/a\040b with fstype nfs4 statvers=1.1
	opts:	rw,vers=4.2,rsize=131072,wsize=65536,hard,proto=tcp,nconnect=2,local_lock=none
	age:	7200
	impl_id:	name='',domain='',date='0,0'
	caps:	caps=0xfffbc0bf,wtmult=512,dtsize=131072,bsize=0,namlen=255
	events:	0 0 1 1 0 0 9 5120
	bytes:	41943040 20971520 0 0 41943040 20971520 10240 5120
	RPC iostats version: 1.1  p/v: 100003/4 (nfs)
	xprt:	tcp 0 0 2 0 0 135 130 3 218 0 9 5 78
	xprt:	tcp 0 0 2 0 0 129 120 4 218 0 10 49 58
	per-op statistics
	        NULL: 1 1 0 44 24 0 0 3 0
	        READ: 320 321 2 60160 41976320 1 53 62 1
	       WRITE: 160 160 0 21004800 29440 1339 1000 2354
device server:/old mounted on /mnt/u with fstype nfs statvers=1.1
	opts:	ro,vers=3,proto=udp,soft
	age:	1
	xprt:	udp 700 1 50 49 2 60 0
	per-op statistics
	     GETATTR: 5 5 0 1 2 3 4 5 0

device tmpfs mounted on /run with fstype tmpfs
)";

} // namespace

TEST_CASE("a client whose place is taken again and again has a second host beside it") {
  struct Row {
    const char* what;
    std::uint64_t begun, connects, age;
    std::optional<std::uint64_t> before; ///< EXCHANGE_ID
    bool second;
  };
  // As counted by two hosts on Linux 6.1: `connects` is 2 after the mount, and 2 more after each restart of the server.
  for (const Row& row : std::initializer_list<Row>{
           {"just mounted", 2, 2, 1, {}, false},
           {"a restart of the server", 3, 4, 100, {}, false},
           {"a network that was away", 3, 6, 65, {}, false},
           {"a server that was frozen, and kept the connection", 4, 3, 86, 3, false},
           {"four restarts", 6, 10, 1000, 5, false},
           {"asleep five times in a month", 7, 2, 2'600'000, 7, false},
           {"two hosts with one name", 8, 2, 14, {}, true},
           {"the same, after a restart", 9, 4, 20, 8, true},
           {"a second host for a short time only, which works just now", 12, 2, 2'600'000, 11, true},
           {"connections by one only", 5, 1, 100, {}, true},
       })
    for (const char* name : {"EXCHANGE_ID", "SETCLIENTID"}) {
      INFO(row.what << ", " << name);
      const auto mounts = [&](std::uint64_t begun) {
        const auto text =
            "device s:/a mounted on /m with fstype nfs4 statvers=1.1\n\topts:\trw,vers=4.2,addr=10.0.0.1\n"
            "\tage:\t" +
            std::to_string(row.age) +
            "\n\txprt:\ttcp 0 0 1 0 0 135 130 3\n"
            "\txprt:\ttcp 0 0 " +
            std::to_string(row.connects) +
            " 0 0 135 130 3\n"
            "\tper-op statistics\n\t        READ: 1 1 0 0 0 0 0 0 0\n\t " +
            std::string(name) + ": " + std::to_string(begun) + " 1 0 0 0 0 0 0 0\n";
        return takeovers(text);
      };
      const auto now = mounts(row.begun);
      REQUIRE(now.contains("/m"));
      const auto before = row.before ? mounts(*row.before) : TakeoversByTarget();
      CHECK(shows_second_host(now.at("/m"), row.before ? &before.at("/m") : nullptr) == row.second);
    }
  CHECK(takeovers(k_text).empty()); // nothing of a client's name in it
}

TEST_CASE("a client is as old as its oldest mount") {
  const auto mount = [](const char* target, const char* age) {
    return std::string("device s:/a mounted on ") + target +
           " with fstype nfs4 statvers=1.1\n\topts:\trw,vers=4.2,addr=a\n\tage:\t" + age +
           "\n\txprt:\ttcp 0 0 2 0 0 135 130 3\n\tper-op statistics\n\tEXCHANGE_ID: 6 1 0 0 0 0 0 0 0\n";
  };
  const auto found = takeovers(mount("/old", "9000000") + mount("/new", "10"));
  CHECK(found.at("/new").times == 4);
  CHECK_FALSE(shows_second_host(found.at("/new")));
}

TEST_CASE("what cannot be read of mountstats counts for nothing") {
  for (const std::string text :
       {"", "device", "device s:/a mounted at /m with fstype nfs4",
        "no device mounted on /m with fstype nfs4\nEXCHANGE_ID: 9",
        "device  mounted on with fstype nfs4\nEXCHANGE_ID: 9", "EXCHANGE_ID: 9",
        "device s:/a mounted on /m with fstype ext4\nEXCHANGE_ID: 9",
        "device s:/a mounted on /m with fstype nfs4\nEXCHANGE_ID: x\nEXCHANGE_ID:\nxprt:\nopts:"}) {
    INFO(text);
    CHECK(takeovers(text).empty());
  }
  const auto found = takeovers("device s:/a mounted on /a\\040b with fstype nfs4\n\tage: "
                               "99999999999999999999\n\txprt:\ttcp 0\n\tEXCHANGE_ID: 9");
  REQUIRE(found.contains("/a b"));
  CHECK(found.at("/a b").times == 7);
}

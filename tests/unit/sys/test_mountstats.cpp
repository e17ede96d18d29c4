#include "sys/mounts/mountstats.hpp"

#include "support/catch.hpp"

#include <optional>
#include <random>

using namespace sharefs::sys;

namespace {

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

TEST_CASE("mountstats of two NFS mounts") {
  const auto mounts = parse_mountstats(k_text);
  REQUIRE(mounts);
  REQUIRE(mounts->size() == 2);
  const auto& one = mounts->front();
  CHECK(one.source == "server:/srv/a b");
  CHECK(one.target == "/mnt/a b");
  CHECK(one.age == std::chrono::hours(2));
  CHECK(one.connections == 2);
  CHECK(one.replies == 250);
  CHECK(one.bad_xids == 7);
  CHECK(one.option("rsize") == "131072");
  CHECK(one.option("hard") == "yes");
  CHECK(one.option("size").empty());
  CHECK(one.operation("READ") == Operation{320, 321, 2, 60160, 41976320, 1, 53, 62, 1});
  CHECK(one.operation("WRITE").errors == 0); // before Linux 5.3
  CHECK(one.operation("LOOKUP") == Operation{});
  CHECK(mounts->back().replies == 49);
  CHECK(mounts->back().bad_xids == 2);
  CHECK(mounts->back().operation("GETATTR").execute_ms == 5);
}

TEST_CASE("mountstats that cannot be read names the line") {
  for (const std::string line :
       {"	age:	many", "	age:	99999999999999999999", "	xprt:	tcp 0 0",
        "	xprt:	tcp 0 0 2 0 0 135 x 3", "	per-op statistics\n	READ: 1 2 3",
        "	per-op statistics\n	READ: 1 1 0 0 0 0 0 -1 0", "	per-op statistics\n	no operation",
        "	per-op statistics\n	READ: 1 1 0 0 0 0 0 0 0\n	READ: 1 1 0 0 0 0 0 0 0"}) {
    INFO(line);
    const auto mounts = parse_mountstats("device s:/a mounted on /m with fstype nfs4 statvers=1.1\n" + line + "\n");
    REQUIRE_FALSE(mounts);
    CHECK(mounts.error().message.starts_with("mountstats:"));
    // Of no matter where it is no NFS mount.
    CHECK(parse_mountstats("device s:/a mounted on /m with fstype ext4\n" + line + "\n"));
  }
  CHECK_FALSE(parse_mountstats("device s:/a mounted at /m with fstype nfs4\n"));
  CHECK_FALSE(parse_mountstats("device  mounted on with fstype nfs4\n"));
  CHECK(parse_mountstats("")->empty());
  CHECK(parse_mountstats("no device mounted on /m with fstype nfs4\n")->empty());
}

TEST_CASE("what happened between two readings") {
  const auto before = parse_mountstats(k_text)->front();
  auto now = before;
  now.age += std::chrono::seconds(10);
  now.operations["READ"].count += 5;
  now.operations["READ"].rtt_ms += 500;
  now.operations["COMMIT"].count = 2;
  now.bad_xids += 1;
  const auto grew = since(now, before);
  CHECK(grew.age == std::chrono::seconds(10));
  CHECK(grew.operation("READ").count == 5);
  CHECK(grew.operation("READ").rtt_ms == 500);
  CHECK(grew.operation("WRITE").count == 0);
  CHECK(grew.operation("COMMIT").count == 2);
  CHECK(grew.bad_xids == 1);
  now.age = std::chrono::seconds(3); // mounted anew
  now.operations["READ"].count = 1;
  CHECK(since(now, before) == now);
  now.age = std::chrono::hours(3);
  CHECK(since(now, before).operation("READ").count == 1); // a counter that began anew
  auto other = now;
  other.source = "server:/other";
  CHECK(since(now, other) == now);
}

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
        return takeovers_in(parse_mountstats(text, {"EXCHANGE_ID", "SETCLIENTID"}).value());
      };
      const auto now = mounts(row.begun);
      REQUIRE(now.contains("/m"));
      const auto before = row.before ? mounts(*row.before) : TakeoversByTarget();
      CHECK(shows_second_host(now.at("/m"), row.before ? &before.at("/m") : nullptr) == row.second);
    }
  CHECK(takeovers_in(*parse_mountstats(k_text)).empty()); // nothing of a client's name in it
}

TEST_CASE("a client is as old as its oldest mount") {
  const auto mount = [](const char* target, const char* age) {
    return std::string("device s:/a mounted on ") + target +
           " with fstype nfs4 statvers=1.1\n\topts:\trw,vers=4.2,addr=a\n\tage:\t" + age +
           "\n\txprt:\ttcp 0 0 2 0 0 135 130 3\n\tper-op statistics\n\tEXCHANGE_ID: 6 1 0 0 0 0 0 0 0\n";
  };
  const auto found = takeovers_in(parse_mountstats(mount("/old", "9000000") + mount("/new", "10")).value());
  CHECK(found.at("/new").times == 4);
  CHECK_FALSE(shows_second_host(found.at("/new")));
}

TEST_CASE("damaged mountstats is read or refused, and nothing else") {
  std::mt19937 random; // always the same numbers // NOLINT(cert-msc51-cpp)
  const std::string whole = k_text;
  std::size_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    auto text = whole;
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      const auto at = random() % (text.size() + 1);
      switch (random() % 4) {
      case 0:
        if (at < text.size())
          text[at] = static_cast<char>(random());
        break;
      case 1:
        text.insert(at, std::string(random() % 30, '9'));
        break;
      case 2:
        text.insert(at, text.substr(random() % (text.size() + 1), random() % 100));
        break;
      default:
        text.resize(at);
      }
    }
    const auto mounts = parse_mountstats(text);
    if (!mounts) {
      ++refused;
      REQUIRE(mounts.error().message.starts_with("mountstats:"));
      continue;
    }
    REQUIRE(mounts->size() <= 6);
    for (const auto& one : *mounts)
      REQUIRE(since(one, mounts->front()).age.count() >= 0);
  }
  CHECK(refused > 1000);
}

#include "exports/client.hpp"
#include "support/catch.hpp"

using namespace sharefs::exports;

TEST_CASE("kinds of clients") {
  struct Case {
    std::string name;
    ClientKind kind;
  };
  const auto row = GENERATE(values<Case>({
      {"", ClientKind::everyone},
      {"*", ClientKind::everyone},
      {"node1", ClientKind::host},
      {"10.0.0.1", ClientKind::host},
      {"10.0.0.0/24", ClientKind::network},
      {"fe80::1", ClientKind::host},
      {"fe80::1%eth0", ClientKind::host},
      {"2001:db8::/64", ClientKind::network},
      {"node/24", ClientKind::network},
      {"10.0.0.300", ClientKind::host},
      {"10.4", ClientKind::host},
      {"*.lab", ClientKind::wildcard},
      {"node[1-3]", ClientKind::wildcard},
      {"[fe80::1]", ClientKind::wildcard},
      {"node?", ClientKind::wildcard},
      {"@nodes", ClientKind::netgroup},
      {"gss/krb5", ClientKind::kerberos},
      {"a,b", ClientKind::host},
  }));
  CAPTURE(row.name);
  CHECK(kind_of(row.name) == row.kind);
}

TEST_CASE("networks and their ranges") {
  struct Case {
    std::string name, first, last, count;
    bool host_bits;
  };
  const auto row = GENERATE(values<Case>({
      {"192.168.16.11/22", "192.168.16.0", "192.168.19.255", "1,024", true},
      {"192.168.16.0/22", "192.168.16.0", "192.168.19.255", "1,024", false},
      {"192.168.16.0/255.255.252.0", "192.168.16.0", "192.168.19.255", "1,024", false},
      {"10.0.0.7", "10.0.0.7", "10.0.0.7", "1", false},
      {"10.0.0.7/32", "10.0.0.7", "10.0.0.7", "1", false},
      {"128.0.0.1/1", "128.0.0.0", "255.255.255.255", "2,147,483,648", true},
      {"fe80::5/64", "fe80::", "fe80::ffff:ffff:ffff:ffff", "2^64", true},
      {"2001:db8::5", "2001:db8::5", "2001:db8::5", "1", false},
  }));
  CAPTURE(row.name);
  const auto network = parse_network(row.name);
  REQUIRE(network);
  CHECK(network->first() == row.first);
  CHECK(network->last() == row.last);
  CHECK(network->count() == row.count);
  CHECK(network->has_host_bits() == row.host_bits);
  CHECK(network->contiguous());
}

TEST_CASE("what is no network") {
  struct Case {
    std::string name;
    bool zero = false;
  };
  const auto row = GENERATE(values<Case>({
      {"10.0.0.0/33"},
      {"10.0.0.0/8x"},
      {"10.0.0.0/-1"},
      {"10.0.0.0/99999999999"},
      {"::1/129"},
      {"10.0.0.0/0", true},
      {"10.0.0.0/", true},
      {"2001:db8::/0", true},
      {"10.0.0.0/0.0.0.0", true},
      {"10.0.0.0/255.255"},
      {"node/24"},
      {"10.0.0/24"},
  }));
  CAPTURE(row.name);
  const auto network = parse_network(row.name);
  REQUIRE_FALSE(network);
  CHECK(network.error().zero == row.zero);
}

TEST_CASE("5 prefix lengths as strtoul(3) reads them") {
  CHECK(*parse_network("10.0.0.0/+24") == *parse_network("10.0.0.0/24"));
  CHECK(*parse_network("10.0.0.0/000024") == *parse_network("10.0.0.0/24"));
  CHECK(*parse_network("2001:db8::/+64") == *parse_network("2001:db8::/64"));
}

TEST_CASE("a mask with holes is no range") {
  const auto network = parse_network("10.0.0.1/255.255.0.255");
  REQUIRE(network);
  CHECK_FALSE(network->contiguous());
}

TEST_CASE("names that were meant as addresses") {
  CHECK(looks_like_address("10.0.0.300"));
  CHECK(looks_like_address("fe80::zz"));
  CHECK_FALSE(looks_like_address("node1"));
  CHECK_FALSE(looks_like_address("12"));
}

TEST_CASE("addresses in one spelling") {
  CHECK(canonical_address("FE80:0::1%eth0") == "fe80::1%eth0");
  CHECK(canonical_address("10.0.0.1") == "10.0.0.1");
  CHECK(canonical_address("10.0.0.0/8").empty());
  CHECK(canonical_address("10.4").empty());
  CHECK(canonical_address("node1").empty());
}

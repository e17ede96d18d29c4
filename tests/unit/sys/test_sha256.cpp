#include "sys/fs/sha256.hpp"

#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::sys;

TEST_CASE("checksums as sha256sum has them", "[tree]") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

#include "conda/verified.hpp"

#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::conda;

TEST_CASE("when a generation was found good", "[conda]") {
  Generation three;
  three.number = 3;
  three.created = 1700000000;
  const auto text = format_verified(three, {1700000099, {}});
  CHECK(parse_verified(text, three).at == 1700000099);
  const std::string fingerprint(64, 'f');
  CHECK(parse_verified(format_verified(three, {1700000099, fingerprint}), three).fingerprint == fingerprint);
  auto other = three;
  other.number = 4;
  CHECK(parse_verified(text, other).at == 0);
  other = three;
  other.created = 1700000001; // a later one with its number
  CHECK(parse_verified(text, other).at == 0);
  for (const auto* damaged : {"", "3", "3 1700000000", "3 1700000000 x", "3 1700000000 12x", "3 1700000000 1 2",
                              "3 1700000000 -1", "3 1700000000 9223372036854775807"})
    CHECK(parse_verified(damaged, three).at == 0);
}

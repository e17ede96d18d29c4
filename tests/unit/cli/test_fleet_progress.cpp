#include "cli/fleet_progress.hpp"

#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::cli;

TEST_CASE("how far many nodes are: the sum, then the slowest") {
  const auto of = [](std::uint64_t bytes, std::uint64_t all) {
    return tree::Progress{.bytes = bytes << 30U, .total_bytes = all << 30U};
  };
  const auto text = text_of_nodes({{"a", of(4, 4)}, {"b", of(1, 4)}, {"c", of(3, 4)}}, std::chrono::seconds(10));
  CAPTURE(text);
  CHECK(text.starts_with("8.0/12 GiB, "));
  CHECK(text.find(" left; ") != std::string::npos);
  CHECK(text.ends_with("; b 25 %, c 75 %"));
  CHECK(text_of_nodes({{"a", of(4, 4)}}, std::chrono::seconds(10)).find(';') == std::string::npos);
}

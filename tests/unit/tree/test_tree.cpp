#include "tree/tree.hpp"

#include "support/catch.hpp"

using namespace sharefs;
using namespace std::chrono_literals;

TEST_CASE("progress of a tree, in words", "[tree]") {
  CHECK(tree::Progress{.took = 0s}.text() == "0 files, 0 B, 0 files/s");
  CHECK(tree::Progress{.files = 10, .bytes = 2048, .took = 4s}.text() == "10 files, 2.0 KiB, 2 files/s");
  CHECK(tree::Progress{.files = 537, .total_files = 536, .took = 1s}.text() == "537/537, 0 B, 537 files/s");
  const tree::Progress half{
      .files = 10'000, .bytes = 512U << 20U, .total_files = 20'000, .total_bytes = 1U << 30U, .took = 10s};
  CHECK(half.text() == "10000/20000, 512 MiB/1.0 GiB, 1000 files/s, 10 s left");
  const tree::Progress large{
      .files = 150'000, .bytes = 5ULL << 30U, .total_files = 289'524, .total_bytes = 10ULL << 30U, .took = 150s};
  CHECK(large.text() == "150000/289524, 5.0/10 GiB, 1000 files/s, 2 min left");
  const tree::Progress image{.bytes = 100U << 20U, .total_bytes = 400U << 20U, .took = 10s};
  CHECK(image.text() == "100/400 MiB, 10 MiB/s, 30 s left");
  CHECK(std::string("copying, 1500 s: ").size() + large.text().size() < 80);
}

#include "base/try.hpp"
#include "support/catch.hpp"

#include <memory>
#include <vector>

namespace sharefs {

namespace {

Result<int> number(int value) {
  return value < 0 ? Result<int>(fail(ErrorCode::usage, "negative")) : value;
}

Result<void> check(int value) {
  TRY(number(value));
  return {};
}

} // namespace

TEST_CASE("TRY: an error ends the function, and is its own") {
  CHECK(check(1));
  REQUIRE_FALSE(check(-1));
  CHECK(check(-1).error() == Error{ErrorCode::usage, "negative", "", ""});
  const auto one_of_two = [](bool first) -> Result<int> {
    if (first)
      TRY(check(-1));
    else
      TRY(check(1));
    return 2;
  };
  CHECK_FALSE(one_of_two(true));
  CHECK(one_of_two(false) == 2);
}

TEST_CASE("TRY_ASSIGN: a value is declared, or taken by a variable that is there") {
  const auto sum = [](int first, int second) -> Result<int> {
    TRY_ASSIGN(const auto one, number(first));
    int two = 0;
    TRY_ASSIGN(two, number(second));
    return one + two;
  };
  CHECK(sum(1, 2) == 3);
  CHECK_FALSE(sum(-1, 2));
  CHECK_FALSE(sum(1, -2));
}

TEST_CASE("TRY_ASSIGN: the call is made once, what it gives is moved, and a variable is copied") {
  int calls = 0;
  const auto make = [&]() -> Result<std::unique_ptr<int>> {
    ++calls;
    return std::make_unique<int>(7);
  };
  const auto read = [&]() -> Result<int> {
    TRY_ASSIGN(const auto made, make());
    return *made;
  };
  CHECK(read() == 7);
  CHECK(calls == 1);
  const auto copy = []() -> Result<std::size_t> {
    const Result<std::vector<int>> all(std::vector<int>{1, 2});
    Result<std::vector<int>> kept(std::vector<int>{1, 2, 3});
    TRY_ASSIGN(const auto first, all);
    TRY_ASSIGN(const auto second, kept);
    return first.size() + second.size() + kept->size();
  };
  CHECK(copy() == 8);
}

TEST_CASE("TRY: a lambda in its expression may have one, too") {
  const auto outer = [](int value) -> Result<int> {
    TRY_ASSIGN(const auto inner, [&]() -> Result<int> {
      TRY(check(value));
      TRY_ASSIGN(const auto same, number(value));
      return same + 1;
    }());
    return inner;
  };
  CHECK(outer(1) == 2);
  CHECK_FALSE(outer(-1));
}

} // namespace sharefs

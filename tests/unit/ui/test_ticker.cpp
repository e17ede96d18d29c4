#include "support/catch.hpp"
#include "ui/ticker.hpp"

#include <sstream>
#include <vector>

using namespace sharefs::ui;
using namespace std::chrono_literals;

TEST_CASE("progress_text", "[ticker]") {
  CHECK(progress_text("mounting", 0, 8, "", 4s) == "mounting, 4 s");
  CHECK(progress_text("mounting", 3, 8, "share", 4s) == "mounting 3/8, 4 s: share");
  CHECK(progress_text("looking", 3, 0, "", 12s) == "looking, 12 s");
  CHECK(progress_text("a\n", 1, 2, "\x1b[2J", 0s) == "a\\n 1/2, 0 s: \\033[2J");
}

TEST_CASE("ticker: what is over soon is never drawn", "[ticker]") {
  std::ostringstream err;
  StatusLine line(err);
  {
    Ticker ticker(line, 80, "working", 2, {10s, 10s});
    ticker.advance("x");
  }
  CHECK(err.str().empty());
}

TEST_CASE("ticker: draws, and leaves an empty line behind", "[ticker]") {
  std::ostringstream err;
  StatusLine line(err);
  {
    Ticker ticker(line, 80, "working", 2, {1ms, 1ms});
    ticker.advance("share");
    std::this_thread::sleep_for(30ms);
  }
  const auto text = err.str();
  CHECK(text.find("\rworking 1/2, 0 s: share") != std::string::npos);
  CHECK(text.ends_with("\r"));
}

TEST_CASE("ticker: many threads advance it while messages are printed", "[ticker]") {
  std::ostringstream err;
  StatusLine line(err);
  {
    Ticker ticker(line, 80, "working", 400, {0ms, 1ms});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) {
          ticker.advance("step");
          line.print("message\n");
        }
      });
    for (auto& thread : threads)
      thread.join();
  }
  std::size_t messages = 0;
  const auto text = err.str();
  for (auto at = text.find("message\n"); at != std::string::npos; at = text.find("message\n", at + 1))
    ++messages;
  CHECK(messages == 400);
}

#include "support/catch.hpp"
#include "ui/progress.hpp"

#include <sstream>
#include <streambuf>
#include <vector>

using namespace sharefs::ui;
using namespace std::chrono_literals;

namespace {

/// What is written, for a test that waits for it.
class Watched : public std::streambuf {
 public:
  bool wait_for(const std::string& part) {
    std::unique_lock lock(m_mutex);
    return m_more.wait_for(lock, 30s, [&] { return m_text.find(part) != std::string::npos; });
  }
  std::string text() {
    const std::lock_guard lock(m_mutex);
    return m_text;
  }

 private:
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    const std::lock_guard lock(m_mutex);
    m_text.append(bytes, static_cast<std::size_t>(count));
    m_more.notify_all();
    return count;
  }
  int overflow(int byte) override {
    const char one = static_cast<char>(byte);
    xsputn(&one, 1);
    return byte;
  }

  std::mutex m_mutex;
  std::condition_variable m_more;
  std::string m_text;
};

} // namespace

TEST_CASE("status line: messages push it aside", "[status_line]") {
  std::ostringstream err;
  StatusLine line(err);
  line.print("one\n");
  line.draw("working", 80);
  line.print("two\n");
  line.print("three\n");
  CHECK(err.str() == "one\n\rworking\r       \rtwo\nthree\n");
}

TEST_CASE("status line: a shorter line covers a longer one, erasing leaves nothing", "[status_line]") {
  std::ostringstream err;
  StatusLine line(err);
  line.draw("longer", 80);
  line.draw("short", 80);
  line.print();
  line.print();
  CHECK(err.str() == "\rlonger\rshort \r      \r");
}

TEST_CASE("status line: never as wide as the terminal", "[status_line]") {
  std::ostringstream err;
  StatusLine line(err);
  line.draw("0123456789", 10);
  CHECK(err.str() == "\r012345...");
  std::ostringstream none;
  StatusLine(none).draw("x", 0);
  CHECK(none.str() == "\r");
}

TEST_CASE("progress_text", "[progress]") {
  CHECK(progress_text("mounting", 0, 8, "", 4s) == "mounting, 4 s");
  CHECK(progress_text("mounting", 3, 8, "share", 4s) == "mounting 3/8, 4 s: share");
  CHECK(progress_text("looking", 3, 0, "", 12s) == "looking, 12 s");
  CHECK(progress_text("a\n", 1, 2, "\x1b[2J", 0s) == "a\\n 1/2, 0 s: \\033[2J");
}

TEST_CASE("progress: what is over soon is never drawn", "[progress]") {
  std::ostringstream err;
  StatusLine line(err);
  {
    Progress progress(line, 80, "working", 2, {10s, 10s});
    progress.advance("x");
  }
  CHECK(err.str().empty());
}

TEST_CASE("progress: draws, and leaves an empty line behind", "[progress]") {
  Watched watched;
  std::ostream err(&watched);
  StatusLine line(err);
  {
    Progress progress(line, 80, "working", 2, {1ms, 1ms});
    progress.advance("share");
    CHECK(watched.wait_for("\rworking 1/2, ")); // 0 s, unless the machine stands still
    CHECK(watched.wait_for(" s: share"));
  }
  CHECK(watched.text().ends_with("\r"));
}

TEST_CASE("progress: of two, the one that was begun last draws", "[progress]") {
  Watched watched;
  std::ostream err(&watched);
  StatusLine line(err);
  Progress outer(line, 80, "working", 2, {1ms, 1ms});
  CHECK(watched.wait_for("working"));
  std::size_t before = 0;
  {
    const Progress inner(line, 80, "copying", 0, {1ms, 1ms});
    CHECK(watched.wait_for("copying"));
    before = watched.text().rfind("\rcopying");
    CHECK(watched.wait_for("copying, 0 s\rcopying, 0 s\rcopying"));
    CHECK(watched.text().find("working", before) == std::string::npos);
  }
  outer.advance("again");
  CHECK(watched.wait_for("again"));
}

TEST_CASE("progress: many threads advance it while messages are printed", "[progress]") {
  std::ostringstream err;
  StatusLine line(err);
  {
    Progress progress(line, 80, "working", 400, {0ms, 1ms});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) {
          progress.advance("step");
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

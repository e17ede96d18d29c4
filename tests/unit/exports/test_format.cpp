#include "support/catch.hpp"
#include "unit/exports/told.hpp"

using namespace sharefs::exports;

TEST_CASE("what is written is read back") {
  const auto directory =
      GENERATE(as<std::string>{}, "/a", "/sp ace", "/tab\tnewline\n", "/quote\"", "/back\\slash", "/\\040", "/\\\\040",
               "/\\0", "/\\1\\234", "/#hash", "/\x01\x7f\xc3\xa4\xff", "relative", "-x", "/a(b)");
  CAPTURE(directory);
  const std::vector<Export> exports{entry(directory, "h", {"rw", "mountpoint=/x y\\040("}), entry(directory, "*", {})};
  REQUIRE(unwritable(exports[0]).empty());
  CHECK(without_places(parse(format(exports), "f").exports) == without_places(exports));
}

TEST_CASE("one line per directory, clients in order") {
  CHECK(format({entry("/a", "h", {"rw", "sync"}), entry("/a", "10.0.0.0/8", {"ro"}), entry("/b", "*", {}, 2),
                entry("/b", "i", {}, 3)}) == "/a h(rw,sync) 10.0.0.0/8(ro)\n/b *()\n/b i()\n");
}

TEST_CASE("defaults are written with each client") {
  CHECK(format(parse("/a -rw h i(sync) -ro j", "f").exports) == "/a h(rw) i(rw,sync) j(rw,ro)\n");
}

TEST_CASE("what exports(5) cannot express is refused") {
  const auto why = [](const std::string& client, const std::string& option) {
    return unwritable(entry("/a", client, {option}));
  };
  CHECK(why("h", "rw").empty());
  CHECK_FALSE(why("", "rw").empty());
  CHECK_FALSE(why("h(rw)", "rw").empty());
  CHECK_FALSE(why("-h", "rw").empty());
  CHECK_FALSE(why("h", "mp=/a,b").empty());
  CHECK_FALSE(why("h", "mp=/a)").empty());
  CHECK_FALSE(why("h", " rw").empty());
  CHECK_FALSE(why("h", "").empty());
  CHECK_FALSE(unwritable(entry("", "h", {})).empty());
}

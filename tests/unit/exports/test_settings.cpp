#include "exports/settings.hpp"
#include "support/catch.hpp"

using namespace sharefs::exports;
using Words = std::vector<std::string>;

namespace {

/// The settings of the defaults of a line and the client's own options.
Settings of(const Words& options, const Words& defaults = {}) {
  REQUIRE_FALSE((find_bad_option(defaults) || find_bad_option(options)));
  Settings settings;
  apply_options(settings, defaults);
  apply_options(settings, options);
  return in_force(settings);
}

} // namespace

TEST_CASE("settings that are the same however they are written") {
  struct Case {
    Words a, b;
  };
  const auto row = GENERATE(values<Case>({
      {{},
       {"ro", "sync", "wdelay", "hide", "nocrossmnt", "secure", "root_squash", "no_all_squash", "no_subtree_check",
        "secure_locks", "acl", "no_pnfs", "anonuid=65534", "anongid=65534", "sec=sys"}},
      {{"ro", "rw"}, {"rw"}},
      {{"sec=unix"}, {"sec=sys"}},
      {{"sec=null"}, {"sec=none"}},
      {{"auth_nlm"}, {"secure_locks"}},
      {{"fsid=root"}, {"fsid=0"}},
      {{"fsid=0x10"}, {"fsid=16"}},
      {{"fsid=4294967295"}, {"fsid=-1"}}, // etab writes %d
      {{"anonuid=-2"}, {"anonuid=4294967294"}},
      {{"mp"}, {"mountpoint"}},
      {{"mp="}, {"mountpoint"}},
      {{"rw", "sec=sys"}, {"sec=sys", "rw"}},
      {{"rw", "sec=sys", "rw", "root_squash", "no_all_squash"}, {"rw"}}, // as etab has it
  }));
  CAPTURE(row.a, row.b);
  CHECK(of(row.a) == of(row.b));
}

TEST_CASE("options behind sec= belong to its flavours") {
  const auto settings = of({"sec=krb5:krb5i", "rw", "sec=sys", "ro", "no_root_squash"});
  REQUIRE(settings.security.size() == 3);
  CHECK((settings.security[0].flags & k_read_only) == 0);
  CHECK((settings.security[2].flags & k_read_only) != 0);
  CHECK((settings.security[0].flags & k_root_squash) != 0);
  CHECK(settings.root_is_root()); // by sec=sys
  CHECK(settings.writable());     // by krb5
  // Own options of a client do not reach the flavours that the defaults of its line made.
  const auto own = of({"ro"}, {"sec=krb5", "rw"});
  CHECK((own.security[0].flags & k_read_only) == 0);
}

TEST_CASE("bad options are told by their index") {
  struct Case {
    Words options;
    std::size_t index;
    std::string code, refused = {};
  };
  const auto row = GENERATE(values<Case>({
      {{"rw", "rx"}, 1, "SF107"},
      {{"RO"}, 0, "SF107"},
      {{""}, 0, "SF107"},
      {{"rw", "anonuid=x", "anonuid="}, 2, "SF108", "anonuid="},
      {{"anongid=users"}, 0, "SF108", "anongid=users"},
      {{"fsid=abc"}, 0, "SF108", "fsid=abc"},
      {{"rw", "mp"}, 1, "SF108", "mp"},
      {{"rw", "pnfs"}, 1, "SF121", "pnfs"},
      {{"xprtsec=tls"}, 0, "SF121", "xprtsec=tls"},
      {{"sec="}, 0, "SF108"},
      {{"sec=sys:"}, 0, "SF108"},
      {{"sec=spkm3"}, 0, "SF108"},
      {{"xprtsec=ssl"}, 0, "SF108"},
      {{"reexport=yes"}, 0, "SF108"},
      {{"fsid"}, 0, "SF107"},
      {{"rw "}, 0, "SF107"},
  }));
  CAPTURE(row.options);
  const auto bad = find_bad_option(row.options, row.refused);
  REQUIRE(bad);
  CHECK(bad->index == row.index);
  CHECK(bad->code == row.code);
  if (!row.refused.empty())
    return;
  auto good = row.options;
  good.erase(good.begin() + static_cast<std::ptrdiff_t>(row.index));
  CHECK(settings_of(row.options) == settings_of(good));
}

TEST_CASE("values that exportfs takes") {
  CHECK(of({"fsid=6f2a3b4c-1111-2222-3333-444455556666"}).value("fsid") == "6f2a3b4c-1111-2222-3333-444455556666");
  CHECK(of({"squash_uids=0-15"}) == of({}));
  CHECK(of({"anonuid=root"}).value("anonuid") == "root"); // exportfs refuses it
  CHECK(of({"refer=/x@h"}).value("refer") == "/x@h");
  CHECK(of({"anonuid=0", "anonuid=65534"}) == of({}));
  CHECK(summary(of({"ro", "anonuid=0", "mountpoint", "mp=/x"})) == "ro,anonuid=0,mountpoint=/x");
  CHECK(differences(of({"anonuid=0"}), of({"mp"})) ==
        Words{"anonuid=65534 instead of anonuid=0", "mountpoint instead of no mountpoint"});
}

TEST_CASE("lists are split at commas, blanks behind a comma passed") {
  CHECK(split_options("") == Words{});
  CHECK(split_options("rw") == Words{"rw"});
  CHECK(split_options(" rw, sync,\tacl") == Words{"rw", "sync", "acl"});
  CHECK(split_options("rw,") == Words{"rw"});
  CHECK(split_options("rw,,ro") == Words{"rw", "", "ro"});
  CHECK(split_options(",rw") == Words{"", "rw"});
}

TEST_CASE("differences are told in words") {
  CHECK(differences(of({"rw"}), of({"rw"})).empty());
  CHECK(differences(of({"rw", "no_root_squash"}), of({"ro"})) ==
        Words{"ro instead of rw", "root_squash instead of no_root_squash"});
  CHECK(differences(of({"fsid=3"}), of({})) == Words{"no fsid instead of fsid=3"});
  CHECK(differences(of({}), of({"sec=krb5"})) == Words{"sec=krb5 instead of sec=sys"});
  CHECK(differences(of({"async"}), of({"sync"})) == Words{"sync instead of async"});
  CHECK(differences(of({"sec=krb5", "rw", "sec=sys", "ro"}), of({"sec=krb5", "rw", "sec=sys", "rw"})) ==
        Words{"rw instead of ro for sec=sys"});
}

TEST_CASE("a summary says what is not usual") {
  CHECK(summary(of({})) == "ro");
  CHECK(summary(of({"rw", "sync", "no_subtree_check"})) == "rw");
  CHECK(summary(of({"rw", "async", "no_root_squash", "insecure", "fsid=0"})) ==
        "rw,no_root_squash,insecure,async,fsid=0");
  CHECK(summary(of({"sec=krb5", "rw"})) == "rw,sec=krb5");
  CHECK(summary(of({"sec=krb5", "rw", "sec=sys", "ro"})) == "sec=krb5,rw,sec=sys,ro");
}

TEST_CASE("4 insecure is per flavour") {
  const auto settings = of({"rw", "sec=sys", "insecure", "no_root_squash", "sec=krb5", "secure", "root_squash"});
  CHECK((settings.security[0].flags & k_insecure) != 0);
  CHECK((settings.security[1].flags & k_insecure) == 0);
  CHECK(settings.any_program_is_root());
  CHECK_FALSE(of({"rw", "sec=sys", "no_root_squash", "sec=krb5", "insecure"}).any_program_is_root());
  CHECK_FALSE(of({"ro", "insecure", "no_root_squash"}).any_program_is_root());
  CHECK(effective(settings, settings.security[1]) ==
        "rw,sync,wdelay,hide,nocrossmnt,secure,root_squash,no_all_squash,no_subtree_check,secure_locks,acl,no_pnfs,"
        "anonuid=65534,anongid=65534");
}

TEST_CASE("4 a summary reads as what it is of") {
  const auto row = GENERATE(values<std::pair<Words, Words>>({
      {{}, {"rw", "sec=sys", "insecure", "no_root_squash", "sec=krb5", "secure", "root_squash"}},
      {{}, {"sec=sys", "rw", "all_squash", "sec=krb5", "no_all_squash", "ro", "sec=none", "insecure"}},
      {{"sec=krb5", "no_root_squash"}, {"rw", "sec=sys", "root_squash"}},
      {{}, {"async", "fsid=3", "anonuid=0", "mp", "sec=krb5p"}},
  }));
  const auto settings = of(row.second, row.first);
  CAPTURE(summary(settings));
  CHECK(of(split_options(summary(settings))) == settings);
}

TEST_CASE("options that came later") {
  CHECK(option_since("xprtsec=tls") == "2.6.4");
  CHECK(option_since("rw").empty());
}

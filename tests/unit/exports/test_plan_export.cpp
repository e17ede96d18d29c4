#include "base/argv.hpp"
#include "exports/diagnose.hpp"
#include "exports/parse.hpp"
#include "exports/plan_export.hpp"
#include "support/catch.hpp"
#include "unit/exports/told.hpp"

#include <algorithm>

using namespace sharefs;
using namespace sharefs::exports;
using Lines = std::vector<std::string>;

namespace {

constexpr const char* k_header =
    "# Managed by sharefs: made from sharefs.yaml by `sharefs export`. Changes made here are lost.\n";

using Exports = std::vector<Export>;

Exports desired(const std::string& directory, const Lines& clients, const Lines& options = {}) {
  Exports exports;
  for (const auto& client : clients)
    exports.push_back(make_export(directory, client, options, {"y", 3, 5}));
  return exports;
}

Request exactly(Exports exports) {
  return {std::move(exports), {}, {}, true};
}

/// A host with these files, whose server runs and whose etab follows from them; directories exist.
Actual host(const std::string& exports_text, const std::optional<std::string>& own = std::nullopt) {
  Actual actual;
  if (!exports_text.empty())
    actual.files.files.push_back(parse(exports_text, k_exports_file));
  if (own)
    actual.files.files.push_back(parse(*own, k_own_file));
  actual.files.own = own;
  actual.files.directory = own.has_value();
  actual.server.threads = 8;
  actual.server.nfsd_mounted = true;
  actual.server.daemons = {"nfsdcld", "rpc.mountd", "rpc.statd", "rpcbind"};
  actual.etab = predict_from_text(actual.files.files, {}).entries;
  return actual;
}

sys::Entry entry_at(const std::string& path, sys::EntryKind kind, const std::string& ancestor) {
  sys::Entry entry;
  entry.path = entry.resolved = path;
  entry.ancestor = ancestor;
  entry.kind = kind;
  entry.device = 7;
  entry.inode = 11;
  return entry;
}

Composed composed_of(const Actual& actual, const Request& request) {
  return compose(actual, request, predict_from_text);
}

/// Each step in a line.
Lines steps(const Actual& actual, const Request& request) {
  Lines lines;
  for (const auto& step : plan_export(actual, request, composed_of(actual, request)).steps)
    lines.push_back(describe(step.action));
  return lines;
}

std::string written(const Actual& actual, const Request& request) {
  return own_file_text(composed_of(actual, request).exports);
}

} // namespace

TEST_CASE("options of a client come after those of all, in the file and in effect") {
  const auto with = [](const std::string& client, const Lines& options, const Lines& own) {
    return make_export("/x", client, options, {"y", 3, 5}, own);
  };
  const Exports exports{with("a", {}, {}), with("b", {}, {"ro"}), with("c", {"rw", "async"}, {"no_root_squash", "ro"})};
  CHECK(exports[1].settings.writable() == false);
  CHECK(own_file_text(exports) == std::string(k_header) + "/x a(rw,sync,no_subtree_check,root_squash)"
                                                          " b(rw,sync,no_subtree_check,root_squash,ro)"
                                                          " c(rw,async,no_subtree_check,no_root_squash,ro)\n");
  const auto again = parse(own_file_text(exports), k_own_file);
  CHECK(again.diagnoses.empty());
  REQUIRE(again.exports.size() == 3);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(again.exports[i].settings == exports[i].settings);
  CHECK(own_file_text(again.exports) == own_file_text(exports));

  for (const auto& entry : exports)
    CHECK(diagnose_entry(entry).empty());
  // The options of a client count for the flavours that those of all name, too.
  CHECK_FALSE(with("b", {"sec=krb5", "rw"}, {"ro"}).settings.writable());
  CHECK_FALSE(with("b", {"sec=krb5", "rw", "sec=sys", "ro"}, {"ro"}).settings.writable());
  CHECK(summary(with("b", {"sec=krb5", "rw", "sec=sys", "ro"}, {"sec=krb5p", "rw"}).settings) == "rw,sec=krb5p");
  CHECK(with("b", {"rw", "sec=krb5", "ro", "fsid=5"}, {"sec=krb5p"}).settings.value("fsid") == "5");
  CHECK(diagnose_entry(with("b", {"rw"}, {"rx"})).at(0).code == "SF107");
}

TEST_CASE("from nothing: the directory, its access, the file, the reload, the server") {
  Actual actual;
  actual.facts.directories["/srv/share"] = entry_at("/srv/share", sys::EntryKind::missing, "/");
  auto request = exactly(desired("/srv/share", {"10.0.0.1", "10.0.0.2"}));
  request.access["/srv/share"] = {plan::DirectoryAccess::Kind::group, "ml", 1234, 02770};
  const auto composed = composed_of(actual, request);
  const auto plan = plan_export(actual, request, composed);
  REQUIRE(plan.steps.size() == 13);
  CHECK(std::get<plan::Directory>(plan.steps[0].action).path == "/srv");
  CHECK(std::get<plan::Directory>(plan.steps[1].action).path == "/srv/share");
  CHECK(std::get<plan::SetAccess>(plan.steps[2].action) ==
        plan::SetAccess{"/srv/share", std::nullopt, {0, 1234, 02770, "u::rwx,g::rwx,o::---"}, "ml"});
  CHECK(describe(plan.steps[2].action) == "set access of /srv/share: root:ml 2770, group-writable");
  CHECK(plan.notes.size() == 1); // what every member may do
  CHECK(std::get<plan::Directory>(plan.steps[3].action).path == "/etc/exports.d");
  const auto& file = std::get<plan::File>(plan.steps[4].action);
  CHECK(file.path == k_own_file);
  CHECK_FALSE(file.before);
  CHECK(file.after == std::string(k_header) + "/srv/share 10.0.0.1(rw,sync,no_subtree_check,root_squash) "
                                              "10.0.0.2(rw,sync,no_subtree_check,root_squash)\n");
  const auto& reload = std::get<plan::RunTool>(plan.steps[5].action);
  CHECK(reload.argv == Argv{"exportfs", "-r"});
  CHECK(reload.harmless);
  CHECK(std::get<plan::RunTool>(plan.steps[11].action).argv == Argv{"rpc.nfsd", "8"});
  CHECK(std::all_of(plan.steps.begin(), plan.steps.end(), [](const auto& step) { return step.group == "export"; }));
}

TEST_CASE("what is right is left alone") {
  const auto request = exactly(desired("/a", {"10.0.0.1"}, {"rw"}));
  auto actual = host("", written(host(""), request));
  CHECK(steps(actual, request).empty());
  SECTION("what is in the file but not in etab needs a reload") {
    actual.etab.clear();
    CHECK(steps(actual, request) == Lines{"run `exportfs -r`"});
  }
  SECTION("so does another option in etab") {
    actual.etab[0].settings = settings_of({"ro"});
    CHECK(steps(actual, request) == Lines{"run `exportfs -r`"});
  }
  SECTION("a stopped server is started, and the exports put into force before") {
    actual.server.threads = 0;
    CHECK(steps(actual, request).size() == 3); // reload, rpc_pipefs, rpc.nfsd
  }
}

TEST_CASE("access of the directory") {
  auto actual = host("");
  const auto plan_of = [&](plan::DirectoryAccess access, plan::Access now) {
    actual.facts.directories["/a"] = entry_at("/a", sys::EntryKind::directory, "/");
    actual.access["/a"] = std::move(now);
    auto request = exactly(desired("/a", {"10.0.0.1"}));
    request.access["/a"] = std::move(access);
    std::vector<plan::SetAccess> found;
    for (const auto& step : plan_export(actual, request, composed_of(actual, request)).steps)
      if (const auto* action = std::get_if<plan::SetAccess>(&step.action))
        found.push_back(*action);
    return found;
  };
  using Kind = plan::DirectoryAccess::Kind;
  const plan::Access plain{5, 6, 0755, ""};
  CHECK(plan_of({Kind::keep, "", 0, 0}, plain).empty());
  CHECK(plan_of({Kind::open, "", 0, 0}, plain) ==
        std::vector<plan::SetAccess>{{"/a", plain, {5, 6, 01777, ""}, {}, 7, 11}}); // the owner stays
  CHECK(plan_of({Kind::open, "", 0, 0}, {5, 6, 01777, ""}).empty());
  CHECK(plan_of({Kind::group, "g", 9, 02770}, plain) ==
        std::vector<plan::SetAccess>{{"/a", plain, {5, 9, 02770, "u::rwx,g::rwx,o::---"}, "g", 7, 11}});
  CHECK(plan_of({Kind::group, "g", 9, 02770}, {5, 9, 02770, "u::rwx,g::rwx,o::---"}).empty());
}

TEST_CASE("what lets everyone in is said in words") {
  auto actual = host("");
  actual.facts.directories["/a"] = entry_at("/a", sys::EntryKind::directory, "/");
  const auto notes = [&](plan::DirectoryAccess access) {
    auto request = exactly(desired("/a", {"10.0.0.1"}));
    request.access["/a"] = std::move(access);
    return plan_export(actual, request, composed_of(actual, request)).notes;
  };
  using Kind = plan::DirectoryAccess::Kind;
  CHECK(notes({Kind::group, "g", 9, 02770}) ==
        Lines{"/a: every member of `g` may delete and replace what another has made in it, whole environments too; "
              "`access: {group: g, sticky: true}` leaves what lies directly in it to its owner"});
  CHECK(notes({Kind::group, "g", 9, 03770}).empty());
  CHECK(notes({Kind::group, "g", 9, 02750}).empty());
  CHECK(notes({Kind::group, "g", 9, 03775}) ==
        Lines{"/a: readable by everyone on every node, and so is every file made in it, whatever the umask"});
  CHECK(notes({Kind::group, "g", 9, 03777}) ==
        Lines{"/a: writable by everyone on every node, and so is every file made in it, whatever the umask"});
  CHECK(notes({Kind::open, "", 0, 0}) == Lines{"/a: writable by everyone on every node"});
  CHECK(notes({Kind::keep, "", 0, 0}).empty());
}

TEST_CASE("the access of directories of the system is never changed") {
  const auto refused = [](const std::string& directory, const std::string& resolved) {
    Actual actual;
    actual.facts.directories[directory] = entry_at(resolved, sys::EntryKind::directory, "/");
    auto request = exactly(desired(directory, {"10.0.0.1"}));
    request.access[directory].kind = plan::DirectoryAccess::Kind::open;
    const auto found = diagnose_access(actual, request);
    request.access[directory].kind = plan::DirectoryAccess::Kind::keep;
    CHECK(diagnose_access(actual, request).empty());
    return found.empty() ? std::string() : found.front().message;
  };
  for (const auto* path :
       {"/", "/etc", "/etc/cron.d", "/usr", "/usr/local/bin", "/var", "/var/lib", "/var/log/x", "/root", "/home",
        "/boot", "/dev/shm", "/proc", "/sys", "/run", "/bin", "/lib64", "/opt", "/tmp"}) {
    CAPTURE(path);
    CHECK_FALSE(refused(path, path).empty());
  }
  for (const auto* path : {"/srv", "/srv/share", "/mnt", "/mnt/share", "/data", "/home/data", "/opt/data", "/etcetera",
                           "/var/lib/share", "/var/cache/hub"}) {
    CAPTURE(path);
    CHECK(refused(path, path).empty());
  }
  CHECK(refused("/srv/link", "/etc") ==
        "the access of `/srv/link` is not changed, since it holds the configuration of the system");
  CHECK(refused("/", "/") ==
        "the access of `/` is not changed, since /etc in it holds the configuration of the system");
}

TEST_CASE("options: what exportfs would complain about is written out") {
  const auto options = [](Lines given) {
    const auto request = exactly(desired("/a", {"h"}, std::move(given)));
    return composed_of(host(""), request).exports.at(0).options;
  };
  CHECK(options({}) == Lines{"rw", "sync", "no_subtree_check", "root_squash"});
  CHECK(options({"rw"}) == Lines{"rw", "sync", "no_subtree_check"});
  CHECK(options({"rw,async", " subtree_check "}) == Lines{"rw", "async", "subtree_check"});
  CHECK(options({"rw", "RO"}) == Lines{"rw", "RO", "sync", "no_subtree_check"}); // told by diagnose_entry
}

TEST_CASE("a file system without an identity gets an fsid, always the same") {
  const auto compose_on = [](const std::string& fs_type, const std::string& others, Lines options = {}) {
    auto actual = host(others);
    auto& ram = actual.facts.directories["/ram"];
    ram.kind = sys::EntryKind::directory;
    ram.fs_type = fs_type;
    return composed_of(actual, exactly(desired("/ram", {"10.0.0.1"}, std::move(options))));
  };
  const auto fsid = [](const Composed& composed) { return settings_of(composed.exports.at(0).options).value("fsid"); };
  const auto first = compose_on("tmpfs", "");
  REQUIRE_FALSE(fsid(first).empty());
  CHECK(fsid(first) == fsid(compose_on("tmpfs", "/b h(fsid=7)")));
  CHECK(first.notes.size() == 1);
  CHECK(first.notes[0].find("fsid=" + fsid(first)) != std::string::npos);
  const auto taken = compose_on("tmpfs", "/b h(fsid=" + fsid(first) + ")");
  CHECK(fsid(taken) == std::to_string(std::stoul(fsid(first)) + 1));
  CHECK(fsid(compose_on("tmpfs", "", {"rw", "fsid=5"})) == "5");
  CHECK(fsid(compose_on("ext4", "")).empty());
}

TEST_CASE("own file: named exports are put in or replaced, --all makes it exactly so") {
  const auto actual = host("", "/a h(ro)\n/b i(ro)\n");
  const Request one{desired("/b", {"j"}, {"rw"}), {}, {}, false};
  const auto after = host("", written(actual, one));
  CHECK(steps(after, one).empty());
  CHECK(steps(after, {desired("/a", {"h"}, {"ro"}), {}, {}, false}).size() == 2); // its options are completed
  CHECK(written(actual, {desired("/a", {"j"}, {"rw"}), {}, {}, false}) ==
        std::string(k_header) + "/a j(rw,sync,no_subtree_check)\n/b i(ro)\n"); // where it was
  CHECK(written(actual, one) == std::string(k_header) + "/a h(ro)\n/b j(rw,sync,no_subtree_check)\n");
  CHECK(written(actual, exactly(one.exports)) == std::string(k_header) + "/b j(rw,sync,no_subtree_check)\n");
  CHECK(written(actual, {{}, {}, {"/a"}, false}) == std::string(k_header) + "/b i(ro)\n");
  CHECK(written(actual, {{}, {}, {"/a", "/b"}, true}).empty());
}

TEST_CASE("withdrawing: the file first, whose guard stops a plan that another run has overtaken") {
  const auto actual = host("/x h(ro)\n", std::string(k_header) + "/a 10.0.0.1(ro)\n/b fe80::1(ro)\n");
  CHECK(steps(actual, {{}, {}, {"/a", "/b"}, true}) ==
        Lines{"remove /etc/exports.d/sharefs.exports", "run `exportfs -r`"});
  CHECK(steps(actual, {{}, {}, {"/a"}, false}) == Lines{"write /etc/exports.d/sharefs.exports", "run `exportfs -r`"});
  SECTION("what another file exports too is not withdrawn") {
    const auto both = host("/a 10.0.0.1(ro)\n", "/a 10.0.0.1(ro)\n");
    CHECK(composed_of(both, {{}, {}, {"/a"}, false}).retired.empty());
  }
  SECTION("after a run that was cut off behind the file, etab still has it") {
    auto late = host("", std::nullopt);
    late.etab = parse_etab("/a\t10.0.0.1(ro)\n");
    CHECK(steps(late, {{}, {}, {"/a"}, false}) == Lines{"run `exportfs -r`"});
    CHECK(steps(host("", std::nullopt), {{}, {}, {"/a"}, false}).empty());
  }
}

TEST_CASE("a client that is no longer wanted is withdrawn") {
  const auto actual = host("", "/a 10.0.0.1(rw,sync,no_subtree_check) 10.0.0.2(rw,sync,no_subtree_check)\n");
  const auto lines = steps(actual, exactly(desired("/a", {"10.0.0.1"}, {"rw"})));
  CHECK(lines == Lines{"write /etc/exports.d/sharefs.exports", "run `exportfs -r`"});
}

TEST_CASE("the reload of others' changes is told, and what it would drop stops it") {
  auto actual = host("/x 10.0.0.9(ro)\n");
  actual.etab = parse_etab("/hand\tfe80::9(rw,sync,fsid=4)\n"); // and /x was not reloaded yet
  auto request = exactly(desired("/a", {"10.0.0.1"}, {"rw"}));
  auto composed = composed_of(actual, request);
  auto plan = plan_export(actual, request, composed);
  CHECK(plan.notes ==
        Lines{"the reload also puts into force what was changed by hand: /x to 10.0.0.9 (/etc/exports:1:4)"});
  const auto stops = diagnose_adhoc(request, composed, plan);
  REQUIRE(stops.size() == 1);
  CHECK(stops[0].code == "SF154");
  CHECK(stops[0].message ==
        "/hand is exported to `fe80::9` (rw,fsid=4) and stands in no file: `exportfs -r` would drop it");
  CHECK(diagnose_adhoc(request, composed, {}).empty()); // nothing is reloaded

  request.drop_adhoc = true;
  plan = plan_export(actual, request, composed);
  REQUIRE(plan.notes.size() == 2);
  CHECK(plan.notes[1] == "/hand to fe80::9 (rw,fsid=4) stands in no file: the reload drops it, and undo does not bring "
                         "it back");
  CHECK(diagnose_adhoc(request, composed, plan).empty());
  CHECK(verify_etab({{}, {}, composed.files, predict_from_text({parse("/x 10.0.0.9(ro)\n", "f")}, {}), {}, {}}, {},
                    parse_etab("/x\t10.0.0.9(ro)\n"))
            .empty());

  // All else is in force: only --drop-adhoc reloads for it.
  actual = host("/x 10.0.0.9(ro)\n");
  actual.etab.push_back(parse_etab("/hand\tfe80::9(rw)\n").front());
  CHECK(steps(actual, {{}, {}, {}, false}).empty());
  CHECK(steps(actual, {{}, {}, {}, false, false, true}) == Lines{"run `exportfs -r`"});
  actual.server.threads = 0; // what etab holds is not in force
  CHECK(composed_of(actual, request).adhoc.empty());
}

TEST_CASE("where own file stands among the others") {
  auto actual = host("/x h(ro)\n");
  actual.files.files.push_back(parse("/y h(ro)", "/etc/exports.d/a.exports"));
  actual.files.files.push_back(parse("/z h(ro)", "/etc/exports.d/zoo.exports"));
  Lines names;
  for (const auto& file : composed_of(actual, exactly(desired("/a", {"h"}))).files)
    names.push_back(file.name);
  CHECK(names == Lines{"/etc/exports", "/etc/exports.d/a.exports", k_own_file, "/etc/exports.d/zoo.exports"});
}

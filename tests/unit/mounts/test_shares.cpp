#include "mounts/shares.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;

namespace {

using Kind = plan::DirectoryAccess::Kind;

sys::Identity identity_of(const std::string& user, unsigned uid) {
  sys::Identity identity;
  identity.user = user;
  identity.uid = uid;
  return identity;
}
const auto k_root = identity_of("root", 0);

Share of(const std::string& path, plan::DirectoryAccess access = {Kind::group, "ml", 2000, 02770}) {
  return {test::share(), "/data/share/" + path, std::move(access)};
}

sys::Entry directory(const std::string& path, std::uint32_t uid = 0, std::uint32_t mode = 0755, unsigned gid = 0) {
  sys::Entry entry;
  entry.path = entry.resolved = path;
  entry.mount = "/data/share";
  entry.kind = sys::EntryKind::directory;
  entry.uid = uid;
  entry.gid = gid;
  entry.mode = mode;
  entry.device = 40;
  entry.inode = 7;
  entry.writable = true;
  return entry;
}

SeenShare there(const Share& share, const plan::Access& access, bool acls = true) {
  const auto entry = directory(share.path, access.uid, access.mode, access.gid);
  return {directory("/data/share"), entry, entry, directory("/data/share"), plan::FoundAccess{access, acls}, {}};
}

SeenShare missing(const Share& share, bool acls = true) {
  sys::Entry nothing;
  nothing.path = nothing.resolved = share.path;
  nothing.ancestor = "/data/share";
  nothing.kind = sys::EntryKind::missing;
  return {directory("/data/share"),
          nothing,
          nothing,
          directory("/data/share"),
          plan::FoundAccess{{0, 0, 0755, ""}, acls},
          {}};
}

/// "make directory X|set access of X: ...|" and "SF241|".
std::string said(const SharePlan& plan) {
  std::string text;
  for (const auto& step : plan.plan.steps)
    text += plan::describe(step.action) + "|";
  for (const auto& one : plan.diagnoses)
    text += one.code + "|";
  return text;
}

std::string planned(const Share& share, const SeenShare& seen, const sys::Identity& self = k_root) {
  return said(plan_shares({share}, {seen}, self));
}

constexpr const char* k_made =
    "make directory /data/share/outputs|set access of /data/share/outputs: root:ml 2770, group-writable|";

} // namespace

TEST_CASE("a missing directory is made on what is mounted, and given to its group") {
  const auto share = of("outputs");
  const auto plan = plan_shares({share}, {missing(share)}, k_root).plan;
  CHECK(said({plan, {}}) == k_made);
  const auto& make = std::get<plan::Directory>(plan.steps[0].action);
  CHECK(make.guarded);
  CHECK(make.actor->beneath == "/data/share");
  CHECK(make.actor->device == 40);
  CHECK(make.actor->inode == 7);
  const auto& set = std::get<plan::SetAccess>(plan.steps[1].action);
  CHECK(set.actor == make.actor);
  CHECK(set.after == plan::Access{0, 2000, 02770, "u::rwx,g::rwx,o::---"});
  CHECK(set.before == plan::Access{0, 0, 0755, ""}); // another one that is there by then is a conflict
}

TEST_CASE("what is as it should be is left alone; `keep` makes, and sets nothing") {
  const auto share = of("outputs");
  CHECK(planned(share, there(share, {0, 2000, 02770, "u::rwx,g::rwx,o::---"})).empty());
  CHECK(planned(share, there(share, {1000, 2000, 02770, "u::rwx,g::rwx,o::---"})).empty()); // whoever owns it
  const auto keep = of("outputs", {});
  CHECK(planned(keep, there(keep, {1000, 1000, 0700, ""})).empty());
  CHECK(planned(keep, missing(keep)) == "make directory /data/share/outputs|");
}

TEST_CASE("without POSIX ACLs mode and group are set, and the umask is named") {
  const auto share = of("outputs");
  const auto plan = plan_shares({share}, {missing(share, false)}, k_root).plan;
  CHECK(std::get<plan::SetAccess>(plan.steps[1].action).after.default_acl.empty());
  REQUIRE(plan.notes.size() == 2);
  CHECK(plan.notes[0].find("every member of `ml` may delete") != std::string::npos);
  CHECK(plan.notes[1].find("no POSIX ACLs (NFS 4 has none), so new files follow the umask") != std::string::npos);
  CHECK(plan.notes[1].find("`sharefs mount share` there") != std::string::npos);
  CHECK(planned(share, there(share, {0, 2000, 02770, ""}, false)).empty()); // and again: nothing to do
}

TEST_CASE("what is there is changed for all to see, and only if it is ours") {
  const auto share = of("outputs");
  const auto plan = plan_shares({share}, {there(share, {0, 0, 0755, ""})}, k_root).plan;
  REQUIRE(plan.steps.size() == 1);
  CHECK(plan.steps[0].why == "members of `ml` share it; now uid 0, gid 0, mode 0755");
  const auto& set = std::get<plan::SetAccess>(plan.steps[0].action);
  CHECK(set.before == plan::Access{0, 0, 0755, ""});
  CHECK(set.identity.inode == 7);
  CHECK(planned(share, there(share, {1000, 1000, 0700, ""})) == "SF242|");
  const auto alice = identity_of("alice", 1000);
  CHECK(planned(share, there(share, {1000, 1000, 0700, ""}), alice) ==
        "set access of /data/share/outputs: 1000:ml 2770, group-writable|");
  CHECK(planned(share, there(share, {0, 0, 0755, ""}), alice) == "SF242|");
}

TEST_CASE("a group that what is above hands on is kept by `open`") {
  const auto share = of("outputs", {Kind::open, "", 0, 0});
  auto seen = missing(share);
  seen.found->access = {0, 2000, 02775, ""};
  const auto plan = plan_shares({share}, {seen}, k_root).plan;
  CHECK(std::get<plan::SetAccess>(plan.steps[1].action).after == plan::Access{0, 2000, 01777, ""});
}

TEST_CASE("what root of this host may not do has a cure") {
  const auto share = of("outputs");
  auto seen = missing(share);
  seen.above.writable = false;
  const auto plan = plan_shares({share}, {seen}, k_root);
  REQUIRE(said(plan) == "SF241|");
  CHECK(plan.diagnoses[0].message ==
        "root of this host may not make /data/share/outputs: storage1 maps root to nobody (root_squash)");
  CHECK(plan.diagnoses[0].hint == "run `sharefs mount share` on storage1, or as a user who may write in /data/share; "
                                  "`access:` of its export says who that is");
  auto unseen = missing(share);
  unseen.entry.kind = sys::EntryKind::unknown;
  unseen.entry.error_number = EACCES;
  const auto warned = plan_shares({share}, {unseen}, k_root);
  REQUIRE(said(warned) == "SF241|");
  CHECK(warned.diagnoses[0].severity == Severity::warning); // it may be right
  auto read_only = share;
  read_only.point.options = {{"access", "ro", "ro"}};
  CHECK(planned(read_only, seen) == "SF243|");
}

TEST_CASE("nothing is made where nothing is mounted any more, but for the server's own directory") {
  auto share = of("outputs");
  auto seen = missing(share);
  seen.top.mount = "/";
  CHECK(planned(share, seen) == "SF243|");
  share.point.here = true;
  share.point.path = share.point.target;
  CHECK(planned(share, seen) == k_made);
  seen.top.kind = sys::EntryKind::unknown;
  CHECK(planned(share, seen) == "SF243|");
}

TEST_CASE("links, files, and names that others could replace are left alone") {
  const auto share = of("outputs");
  for (const auto kind : {sys::EntryKind::symlink, sys::EntryKind::file, sys::EntryKind::unknown}) {
    auto seen = missing(share);
    seen.entry.kind = kind;
    CHECK(planned(share, seen) == "SF243|");
  }
  auto file_above = missing(share);
  file_above.entry.error_number = ENOTDIR;
  CHECK(planned(share, file_above) == "SF243|");
  auto replaceable = missing(share);
  replaceable.guarded.kind = sys::EntryKind::unknown;
  replaceable.guarded.error_number = EPERM;
  CHECK(planned(share, replaceable) == "SF243|");
  auto existing = there(share, {0, 0, 0755, ""});
  existing.guarded.kind = sys::EntryKind::unknown;
  CHECK(planned(share, existing) == "SF243|");
  existing.found->access = {0, 2000, 02770, "u::rwx,g::rwx,o::---"};
  CHECK(planned(share, existing).empty()); // it is right, whoever could replace it
  auto silent = missing(share);
  silent.found.reset();
  silent.failure = Error{ErrorCode::timeout, "no answer", "", ""};
  CHECK(planned(share, silent).find("SF243") != std::string::npos);
}

TEST_CASE("an outer directory is given away when all in it is made") {
  const auto outer = of("team");
  const auto inner = of("team/outputs");
  CHECK(said(plan_shares({inner, outer}, {missing(inner), missing(outer)}, k_root)) ==
        "make directory /data/share/team|make directory /data/share/team/outputs|"
        "set access of /data/share/team/outputs: root:ml 2770, group-writable|"
        "set access of /data/share/team: root:ml 2770, group-writable|");
}

TEST_CASE("a directory that became nobody's is no directory that was made") {
  const auto share = of("outputs", {});
  const auto plan = plan_shares({share}, {missing(share)}, k_root).plan;
  CHECK(diagnose_made(plan, {share}, {there(share, {0, 0, 0755, ""})}, k_root).empty());
  const auto found = diagnose_made(plan, {share}, {there(share, {65534, 65534, 0755, ""})}, k_root);
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "SF241");
  CHECK(found[0].message == "what root makes there belongs to uid 65534: storage1 maps root to nobody (root_squash)");
  CHECK(diagnose_made({}, {share}, {there(share, {65534, 65534, 0755, ""})}, k_root).empty()); // it was there before
}

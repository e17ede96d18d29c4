#include "mounts/plan_mount.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;
using test::has_code;
using test::nfs_line;
using test::table_of;

namespace {

const std::string k_share = nfs_line(50, 1, "/data/share", "storage1:/mnt/share");
const MountPoint k_named{.name = "share", .target = "/data/share"};

std::vector<std::string> targets_of(const plan::Plan& plan) {
  std::vector<std::string> targets;
  for (const auto& step : plan.steps)
    targets.push_back(std::get<plan::Unmount>(step.action).target);
  return targets;
}

} // namespace

TEST_CASE("a mount is unmounted plainly, with what undo needs") {
  const auto plan = plan_unmounts(table_of(k_share), {k_named}, {}, {});
  REQUIRE(plan.plan.steps.size() == 1);
  const auto& action = std::get<plan::Unmount>(plan.plan.steps[0].action);
  CHECK_FALSE(action.force);
  CHECK_FALSE(action.lazy);
  CHECK(action.source == "storage1:/mnt/share");
  CHECK(action.options.find("vers=4.2") != std::string::npos);
  CHECK(action.options.find("clientaddr") == std::string::npos);
  CHECK(plan.plan.notes.empty());
}

TEST_CASE("force and lazy come with their consequences") {
  const auto plan = plan_unmounts(table_of(k_share), {k_named}, {}, {true, true, std::chrono::seconds(3)});
  const auto& action = std::get<plan::Unmount>(plan.plan.steps[0].action);
  CHECK(action.force);
  CHECK(action.lazy);
  CHECK(action.deadline == std::chrono::seconds(3));
  CHECK(plan.plan.notes.size() == 2);
}

TEST_CASE("what is not mounted: by name nothing to do, by path a mistake") {
  const auto named = plan_unmounts(table_of(""), {k_named}, {}, {});
  CHECK(named.plan.empty());
  CHECK(named.diagnoses.empty());
  CHECK(named.right == std::vector<std::string>{"/data/share"});
  const auto by_path = plan_unmounts(table_of(k_share), {{.target = "/data/shaer"}}, {}, {});
  REQUIRE(has_code(by_path.diagnoses, "SF217"));
  CHECK(by_path.diagnoses[0].hint.find("/data/share") != std::string::npos);
  const auto below = plan_unmounts(table_of(k_share), {{.target = "/data/share/sub"}}, {}, {});
  CHECK(below.diagnoses[0].hint.find("lies on the NFS mount /data/share") != std::string::npos);
}

TEST_CASE("only NFS is unmounted") {
  const auto plan = plan_unmounts(table_of("50 1 8:2 / /data rw - ext4 /dev/sdb1 rw\n"), {{.target = "/data"}}, {}, {});
  CHECK(plan.plan.empty());
  CHECK(has_code(plan.diagnoses, "SF223"));
  CHECK(plan.blocked.size() == 1);
}

TEST_CASE("mounts below are told; lazy takes them along; selected ones go first") {
  const auto table = table_of(k_share + nfs_line(51, 50, "/data/share/in", "storage1:/mnt/elsewhere"));
  const auto refused = plan_unmounts(table, {k_named}, {}, {});
  CHECK(refused.plan.empty());
  CHECK(has_code(refused.diagnoses, "SF224"));
  CHECK(plan_unmounts(table, {k_named}, {}, {false, true, {}}).plan.steps.size() == 1);
  const auto both = plan_unmounts(table, {k_named, {.name = "in", .target = "/data/share/in"}}, {}, {});
  CHECK(targets_of(both.plan) == std::vector<std::string>{"/data/share/in", "/data/share"});
  CHECK(both.plan.steps[0].group == both.plan.steps[1].group);
}

TEST_CASE("submounts of the kernel's own are no obstacle") {
  const auto table = table_of(k_share + nfs_line(51, 50, "/data/share/sub", "storage1:/mnt/share/sub"));
  CHECK(plan_unmounts(table, {k_named}, {}, {}).plan.steps.size() == 1);
}

TEST_CASE("stacked mounts go one after the other") {
  const auto table = table_of(k_share + nfs_line(51, 50, "/data/share", "storage2:/mnt/share"));
  const auto plan = plan_unmounts(table, {k_named}, {}, {});
  REQUIRE(plan.plan.steps.size() == 2);
  CHECK(std::get<plan::Unmount>(plan.plan.steps[0].action).source == "storage2:/mnt/share");
  CHECK(std::get<plan::Unmount>(plan.plan.steps[1].action).source == "storage1:/mnt/share");
}

TEST_CASE("an NFS mount on an automount point: only the NFS mount goes") {
  const auto table = table_of("50 1 0:3 / /data/share rw - autofs systemd-1 rw\n" +
                              nfs_line(51, 50, "/data/share", "storage1:/mnt/share"));
  CHECK(plan_unmounts(table, {k_named}, {}, {}).plan.steps.size() == 1);
}

TEST_CASE("a mount.nfs that would mount it again is told") {
  const std::vector<PendingMount> pending{{77, "storage1:/mnt/share", "/data/share", "bg"}};
  CHECK(has_code(plan_unmounts(table_of(k_share), {k_named}, pending, {}).diagnoses, "SF218"));
}

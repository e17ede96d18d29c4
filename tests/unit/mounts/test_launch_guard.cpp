#include "mounts/launch_guard.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;
using test::nfs_line;
using test::ScriptedSystem;

namespace {

/// What is said of a launch on a machine where only /data/share is expected.
std::string said(const std::string& mounts, const Launch& launch, int answer = 0) {
  ScriptedSystem system;
  system.machine.mounts = test::table_of(mounts);
  system.machine.entries["/data/share"] = test::answered(answer);
  const auto found =
      check_launch_mounts(system, {{"/data/share", "share", "sharefs.yaml:9"}}, launch, std::chrono::seconds(1));
  return found.empty() ? "" : found.front().code + " " + found.front().subject + ": " + found.front().message;
}

std::string path_of(const Launch& launch) {
  const auto text = said("", launch);
  return text.substr(0, text.find(": "));
}

} // namespace

TEST_CASE("nothing is mounted where a path of the launch lies") {
  CHECK(
      said("", {{"python", "t.py", "--output_dir", "/data/share/out"}, {}, "/"}) ==
      "SF418 /data/share/out: nothing is mounted on /data/share (sharefs.yaml:9 wants it): the command would use this "
      "node's own disk");
  const std::string found = "SF418 /data/share/out";
  CHECK(path_of({{"--output_dir=/data/share/out"}, {}, "/"}) == found);
  CHECK(path_of({{"bash", "-c", "cd '/data/share/out' && python t.py"}, {}, "/"}) == found);
  CHECK(path_of({{"true"}, {"WANDB_DIR=/data/share/out"}, "/"}) == found);
  CHECK(path_of({{"true"}, {"DIRS=/tmp:/data/share/out"}, "/"}) == found);
  CHECK(path_of({{"true"}, {}, "/data/share/out"}) == found);
  CHECK(path_of({{"--data", "/data/share"}, {}, "/"}) == "SF418 /data/share");
}

TEST_CASE("what lies elsewhere, on another machine, or is only searched, stops nothing") {
  const Launch launch = GENERATE(values<Launch>({
      {{"echo", "/data/shared/x", "/data", "/mnt/data/share/x", "data/share"}, {}, "/data"},
      {{"rsync", "storage1:/data/share/x", "."}, {}, "/"},
      {{"true"}, {"PATH=/bin:/data/share/bin", "LD_LIBRARY_PATH=/data/share/lib", "OLDPWD=/data/share"}, "/"},
  }));
  CHECK(said("", launch).empty());
}

TEST_CASE("a mount that answers, an automounter, and a local disk are there; a stale or hung one is not") {
  const Launch launch{{"--output_dir=/data/share/out"}, {}, "/"};
  const auto nfs = nfs_line(50, 1, "/data/share", "storage1:/mnt/share");
  CHECK(said(nfs, launch).empty());
  CHECK(said(nfs, launch, EACCES).empty());
  CHECK(said("50 1 0:3 / /data/share rw - autofs systemd-1 rw\n", launch).empty());
  CHECK(said("50 1 8:33 / /data/share rw - xfs /dev/sdc1 rw\n", launch).empty());
  CHECK(said(nfs, launch, ESTALE).find("/data/share is stale") != std::string::npos);
  CHECK(said(nfs, launch, ETIMEDOUT).find("/data/share is hung") != std::string::npos);
  CHECK(said(nfs, {{"true"}, {}, "/data/share"}, ETIMEDOUT).empty()); // a shell stands there: nothing is asked for
}

#include "plan/action.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::plan;

TEST_CASE("an action is described in one line") {
  const std::vector<std::string> expected{
      "write /etc/exports.d/sharefs.exports",
      "write /etc/x",
      "write /etc/empty",
      "remove $'/etc/\xc3\xa4 b\\n'",
      "make directory /data/share",
      "make directory $'/home/alice/\\377' as alice",
      "make directory /data/share/a",
      "remove directory /data/share as alice",
      "remove directory /d",
      "link /home/alice/miniconda3/envs/llm -> /data/share/conda/llm as alice",
      "link /l -> $'\\360('",
      "remove link /l -> relative/../t",
      "point link /data/current to gen-2 instead of gen-1",
      "point link /data/llm/lib/x to /data/llm/y instead of /old/y",
      "rename /home/alice/envs to /home/alice/envs.before-sharefs as alice",
      "replace /home/alice/envs/llm by a link to /data/conda/llm, keep it as /home/alice/envs/llm.kept as alice",
      "put /data/b back in place of the link $'/data/\\377'",
      "set access of /data/share: root:1001 2775, readable by everyone",
      "set access of /data/share: 4294967294:root 0777, writable by everyone",
      "mount storage1:/mnt/share on /data/share",
      "unmount /data/share (force, lazy)",
      "unmount /data/share",
      "delete $'/var/tmp/sharefs-alice/\\377' with all in it",
      "delete /home/alice/x with all in it as alice",
      "give what lies below /srv/share to ml",
      "change 2 files in /data/conda/llm",
      "delete 1 file in $'/data/conda/\\377'",
      "run `/data/conda/llm/bin/python` as alice",
      "run `/data/conda/llm/bin/python3.11 -I` as alice",
      "run `exportfs -r`",
      "run `systemctl start 'a b'`",
      "run `sync`",
      "run `systemd-analyze verify /x`",
      "remount /data/share with ro,nosuid,nodev",
      "remount /data/share with rw",
      "forbid writing in /data/share",
      "allow writing in $'/data/\\377'",
  };
  std::vector<std::string> described;
  for (const auto& action : test::samples())
    described.push_back(describe(action));
  CHECK(described == expected);
}

TEST_CASE("touched paths are those that change") {
  using Paths = std::vector<std::string>;
  CHECK(touched_paths(File{"/a", {}, "", 0}) == Paths{"/a"});
  CHECK(touched_paths(make_link("/a", "/b")) == Paths{"/a"});
  CHECK(touched_paths(Rename{"/a", "/b", {}}) == Paths{"/a", "/b"});
  CHECK(touched_paths(RemoveTree{"/a", 1, 2}) == Paths{"/a"});
  CHECK(touched_paths(Mount{"s:/x", "/b", "nfs", ""}) == Paths{"/b"});
  CHECK(touched_paths(Unmount{"/b", false, false, "s:/x", "nfs", ""}) == Paths{"/b"});
  CHECK(touched_paths(RunTool{{"sync"}, {}}).empty());
}

#pragma once
// One or more of every action, with bytes that are hard on JSON and on terminals.
#include "plan/action.hpp"

namespace sharefs::test {

using namespace plan;

inline Actor alice() {
  return {{"alice", 1001, 1001, {1001, 2000}, "/home/alice"}, "/home/alice"};
}

inline std::vector<Action> samples() {
  const std::string bytes = std::string("not \xff\xfe utf-8\n\0 with a NUL", 26);
  return {
      File{"/etc/exports.d/sharefs.exports", std::nullopt, "/srv *(ro)\n", 0640},
      File{"/etc/x", "before\n", bytes, 0644},
      File{"/etc/empty", "", "", 0},
      remove_file("/etc/\xc3\xa4 b\n", bytes, 04755),
      make_directory("/data/share", 02775),
      make_directory("/home/alice/\xff", 0700, alice()),
      make_directory("/data/share/a", 0755, std::nullopt, false, {7, 11, 0U, 2000U, 0040000, 0}),
      remove_directory("/data/share", 0755, alice()),
      Directory{"/d", 02770, std::nullopt, std::nullopt, false, {}, Access{0, 1001, 02770, "u::rwx,g::rwx,o::---"}},
      make_link("/home/alice/miniconda3/envs/llm", "/data/share/conda/llm", alice()),
      make_link("/l", "\xf0\x28"),
      remove_link("/l", "relative/../t"),
      Link{"/data/current", "gen-1", "gen-2", std::nullopt},
      Link{"/data/llm/lib/x", "/old/y", "/data/llm/y", std::nullopt, false, {7, 12, 1001U, 1001U, 0120000, 0}},
      Rename{"/home/alice/envs", "/home/alice/envs.before-sharefs", alice()},
      ExchangeForLink{"/home/alice/envs/llm", "/home/alice/envs/llm.kept", "/data/conda/llm", false, 7, 11, alice()},
      ExchangeForLink{"/data/\xff", "/data/b", "relative/c", true, 0, 1, std::nullopt},
      SetAccess{"/data/share", std::nullopt, Access{0, 1001, 02775, "u::rwx,g::rwx,o::r-x"}},
      SetAccess{"/data/share", Access{1, 2, 0755, ""}, Access{4294967294U, 0, 0777, ""}},
      Mount{"storage1:/mnt/share", "/data/share", "nfs", "vers=4.2,hard", std::chrono::milliseconds(1234)},
      Unmount{"/data/share", true, true, "storage1:/mnt/share", "nfs4", "rw,vers=4.2", std::chrono::milliseconds(1)},
      Unmount{"/data/share", false, false, "", "", "", std::chrono::milliseconds(10'000)},
      RemoveTree{"/var/tmp/sharefs-alice/\xff", 0xFFFFFFFFFFFFFFFFU, 2, std::chrono::milliseconds(7)},
      RemoveTree{"/home/alice/x", 0, 2, std::chrono::milliseconds(7), alice(), false},
      SetTreeAccess{"/srv/share", "ml", 3000, 03770, 7, 11, std::chrono::milliseconds(9)},
      ChangeFiles{"/data/conda/llm",
                  0,
                  5,
                  {{"bin/pip", std::string(64, 'a'), std::string(64, 'b'), {{2, "/old", bytes}}, {}, {}},
                   {"share/x", "", "", {}, 0600, 0644, false, {7, 13, 1001U, 4294967294U, 0100000, 0}}},
                  std::chrono::milliseconds(8)},
      ChangeFiles{"/data/conda/\xff",
                  3,
                  5,
                  {{"lib/a.pyc", "", "", {}, {}, {}, true, {7, 14, {}, {}, 0, 1'700'000'000'000'000'001}}}},
      RunTool{{"/data/conda/llm/bin/python"}, {}, true, {0}, std::chrono::milliseconds(5), false, alice()},
      RunTool{
          {"/data/conda/llm/bin/python3.11", "-I"},
          {},
          true,
          {0},
          std::chrono::milliseconds(5),
          false,
          alice(),
          sys::CheckedProgram{"/data/conda/llm", {0, 11}, "bin/python3.11", {0, 12, 1001U, 1001U, 0100000, 0}, 1001U}},
      RunTool{{"exportfs", "-r"}, {}, true, {0, 1}, std::chrono::milliseconds(30'000)},
      RunTool{{"systemctl", "start", "a b"}, {"systemctl", "stop", "a b"}, false, {0}, std::chrono::milliseconds(5)},
      RunTool{{"sync"}, {}, false, {}, std::chrono::milliseconds(5)},
      RunTool{{"systemd-analyze", "verify", "/x"}, {}, true, {0}, std::chrono::milliseconds(5), true},
      Remount{"/data/share", "nosuid,nodev", "ro,nosuid,nodev"},
      Remount{"/data/share", "ro", "", std::chrono::milliseconds(3)},
      SetImmutable{"/data/share", true, 3, 0xFFFFFFFFFFFFFFFFU},
      SetImmutable{"/data/\xff", false},
  };
}

} // namespace sharefs::test

#pragma once
// What `sharefs init` finds on a host, as values for the text that it writes.
#include "exports/parse.hpp"
#include "mounts/boot.hpp"
#include "sys/system.hpp"

#include <string>
#include <vector>

namespace sharefs::cli {

struct InitFacts {
  std::string hostname;
  std::vector<std::string> addresses;        ///< of this host, best first
  std::vector<exports::ExportsFile> exports; ///< in the order in which exportfs reads them
  std::vector<sys::MountEntry> mounts;       ///< NFS mounts a person made, in the order of the table
  std::vector<mounts::BootEntry> boot;       ///< what mounts NFS at boot, but for what sharefs wrote
  std::vector<mounts::BootEntry> not_taken;  ///< other storage elsewhere, and NFS that nothing mounts at boot
  std::string hostfile;                      ///< empty: none was found that only root can write
};

/// The source of a mount that a shell works out: what it is, only a run of rc.local says.
bool is_expanded(const std::string& source);

/// NFS mounts of the table that stand for themselves: visible, not of containers, and not made by the kernel when it
/// crossed into another file system of the same server.
std::vector<sys::MountEntry> own_nfs_mounts(const sys::MountTable& table);

/// Everything with a deadline; no server is asked. With `live` false only files below the root are read. Errors: files
/// that cannot be read.
Result<InitFacts> find_init_facts(sys::System& system, bool live);

} // namespace sharefs::cli

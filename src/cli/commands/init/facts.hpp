#pragma once
// The facts that `sharefs init` finds on a host, from which its text is made.
#include "exports/parse.hpp"
#include "mounts/boot.hpp"
#include "sys/system.hpp"

#include <string>
#include <vector>

namespace sharefs::cli {

struct InitFacts {
  std::string hostname;
  std::vector<std::string> addresses;        ///< of this host, the best for clients first
  std::vector<exports::ExportsFile> exports; ///< in the order in which exportfs reads them
  std::vector<sys::MountEntry> mounts;       ///< NFS mounts that a person made, in the order of the mount table
  std::vector<mounts::BootEntry> boot;       ///< entries that mount NFS at boot, without those of sharefs
  std::vector<mounts::BootEntry> not_taken;  ///< entries of other storage, and NFS entries that nothing mounts at boot
  std::string hostfile;                      ///< empty: none was found that only root can write
};

/// True if a shell computes the source of a mount: it is known only when rc.local runs.
bool is_expanded(const std::string& source);

/// Returns the NFS mounts of the table that a person made: visible, not of containers, and not made by the kernel when
/// a path crossed into another file system of the same server.
std::vector<sys::MountEntry> own_nfs_mounts(const sys::MountTable& table);

/// Reads the facts with deadlines; no server is asked. With `live` false only files below the root are read. Returns
/// the errors of files that cannot be read.
Result<InitFacts> find_init_facts(sys::System& system, bool live);

// The commented sharefs.yaml that `sharefs init` writes. Pure.

/// Returns a text that config::parse accepts, whatever was found. Facts that sharefs.yaml cannot express become
/// comments with the reason, and sections without facts become examples in comments.
std::string init_text(const InitFacts& facts);
/// Summarizes the text and what was left out of it: "1 export and 6 NFS mounts; not taken over: ...".
std::string summary_of(const InitFacts& facts, const std::string& text);

} // namespace sharefs::cli

#pragma once
// Desired exports and what is there -> the content of sharefs' own file, and a plan. Pure.
#include "exports/facts.hpp"
#include "exports/host.hpp"
#include "exports/server.hpp"
#include "plan/plan.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sharefs::exports {

/// Who may use the directory itself.
struct DirectoryAccess {
  enum class Kind {
    keep,  ///< as it is; a new directory is root's, 0755
    open,  ///< 0777, as the manual recipe has it
    group, ///< of `gid`, `mode` with its setgid bit, and default ACLs, so that umasks do not matter
  };
  Kind kind = Kind::keep;
  std::string group;
  std::uint32_t gid = 0;
  std::uint32_t mode = 02775;
  friend bool operator==(const DirectoryAccess&, const DirectoryAccess&) = default;
};

/// One export as it should be.
struct Desired {
  std::string directory;
  std::vector<std::string> clients;
  std::vector<std::string> options; ///< empty: rw,sync,no_subtree_check,root_squash
  DirectoryAccess access;
  Origin origin;
};

struct Request {
  std::vector<Desired> exports;
  std::vector<std::string> remove; ///< directories to withdraw; nothing is done to the directories themselves
  bool exactly = false;            ///< own file holds `exports` and nothing else (--all)
};

/// The host, as probe functions told it.
struct Actual {
  HostFiles files;
  std::vector<EtabEntry> etab;
  HostFacts facts;
  ServerState server;
  std::map<std::string, DirectoryState, std::less<>> directories; ///< by the desired directory
};

/// What own file is to hold: the desired exports with complete options, and the other entries that stay.
struct Composed {
  std::vector<Export> exports;    ///< with the places in sharefs.yaml for the desired ones
  std::vector<std::string> notes; ///< what was added and why
  std::vector<EtabEntry> retired; ///< exported now, and by no file any more
};
Composed compose(const Actual& actual, const Request& request);

/// Text of own file; "" for no exports (then there is no file).
std::string own_file_text(const std::vector<Export>& exports);

/// The files as they will be, own one included, with the places of sharefs.yaml: for diagnose().
std::vector<ExportsFile> files_after(const Actual& actual, const Composed& composed);

plan::Plan plan_export(const Actual& actual, const Request& request, const Composed& composed);

} // namespace sharefs::exports

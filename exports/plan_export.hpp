#pragma once
// Desired exports and what is there -> the content of sharefs' own file, and a plan. Pure.
#include "exports/ask.hpp"
#include "exports/host.hpp"
#include "exports/server.hpp"
#include "plan/directory_access.hpp"
#include "plan/plan.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::exports {

struct Request {
  std::vector<Export> exports;                                      ///< as they should be, by make_export()
  std::map<std::string, plan::DirectoryAccess, std::less<>> access; ///< by directory; none: keep
  std::vector<std::string> remove; ///< directories to withdraw; nothing is done to the directories themselves
  bool exactly = false;            ///< own file holds `exports` and nothing else (--all)
  bool recursive = false;          ///< access is given to what lies below, too
  bool drop_adhoc = false;         ///< what is exported and stands in no file may go with the reload
};

/// The host, as the probe functions found it.
struct Actual {
  HostFiles files;
  std::vector<Export> etab;
  HostFacts facts;
  ServerState server;
  std::map<std::string, plan::Access, std::less<>> access; ///< by the desired directory, if it exists
  std::vector<plan::SetTreeAccess> trees;                  ///< of those below which something is to be changed
};

/// What own file is to hold: the desired exports with complete options, and the other entries that stay. And what
/// exportfs makes of the files then.
struct Composed {
  std::vector<Export> exports;    ///< with the places in sharefs.yaml for the desired ones
  std::vector<std::string> notes; ///< what was added and why
  std::vector<ExportsFile> files; ///< as they will be, own one included
  ExpectedEtab expected;          ///< what is exported then
  std::vector<Export> retired;    ///< exported now, and by no file any more
  std::vector<Export> adhoc = {}; ///< exported now, and never by a file: a reload drops them
};
Composed compose(const Actual& actual, const Request& request, const Ask& ask);

/// Text of own file; "" for no exports (then there is no file).
std::string own_file_text(const std::vector<Export>& exports);

/// Access that must not be set: of directories of the operating system (SF139).
Diagnoses diagnose_access(const Actual& actual, const Request& request);

/// What gives `access` to all below the directory, if it is there and that is a group's.
std::optional<plan::SetTreeAccess> tree_access(const Actual& actual, const std::string& directory,
                                               const plan::DirectoryAccess& access);

/// If the plan holds a reload: what else it would drop, unless that is wanted (SF154).
Diagnoses diagnose_adhoc(const Request& request, const Composed& composed, const plan::Plan& plan);

plan::Plan plan_export(const Actual& actual, const Request& request, const Composed& composed);

} // namespace sharefs::exports

#pragma once
// Makes the content of sharefs' own file and a plan from the desired exports and the actual host. Pure.
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
  std::map<std::string, plan::DirectoryAccess, std::less<>> access; ///< by directory; one that is missing is kept as is
  std::vector<std::string> remove; ///< directories whose exports are withdrawn; the directories themselves stay
  bool exactly = false;            ///< the own file holds `exports` and nothing else (--all)
  bool recursive = false;          ///< access is also given to everything below the directory
  bool drop_adhoc = false;         ///< the reload may drop exports that stand in no file
};

/// The host as the probe functions have read it.
struct Actual {
  HostFiles files;
  std::vector<Export> etab;
  HostFacts facts;
  ServerState server;
  std::map<std::string, plan::Access, std::less<>> access; ///< by the desired directory, if it exists
  std::vector<plan::SetTreeAccess> trees;                  ///< for directories below which access has to be changed
};

/// The content that the own file shall have (the desired exports with complete options, and the other entries that
/// stay), and what exportfs then makes of all files.
struct Composed {
  std::vector<Export> exports;    ///< the desired ones have their places in sharefs.yaml
  std::vector<std::string> notes; ///< options that were added, and why
  std::vector<ExportsFile> files; ///< as they will be, with the own file
  ExpectedEtab expected;          ///< the exports that are in force then
  std::vector<Export> retired;    ///< in force now, of a directory of this request, and no longer in any file
  std::vector<Export> adhoc = {}; ///< in force now, of other directories and in no file: a reload drops them
};
/// Decides what the own file shall hold, and asks by `ask` what exportfs makes of all files then.
Composed compose(const Actual& actual, const Request& request, const Ask& ask);

/// Returns the text of the own file; "" without exports, for which there is no file.
std::string own_file_text(const std::vector<Export>& exports);

/// SF139: reports directories of the operating system, whose access must not be changed.
Diagnoses diagnose_access(const Actual& actual, const Request& request);

/// Returns the action that gives `access` to everything below the directory; nullopt if the directory does not exist or
/// the access is not a group's.
std::optional<plan::SetTreeAccess> tree_access(const Actual& actual, const std::string& directory,
                                               const plan::DirectoryAccess& access);

/// SF154: reports the ad hoc exports that a reload in the plan would drop, unless the request allows that.
Diagnoses diagnose_adhoc(const Request& request, const Composed& composed, const plan::Plan& plan);

/// Returns the steps: make directories and set their access, write the own file, reload, start the server.
plan::Plan plan_export(const Actual& actual, const Request& request, const Composed& composed);

} // namespace sharefs::exports

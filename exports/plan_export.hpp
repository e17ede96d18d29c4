#pragma once
// Makes the content of sharefs' own file and a plan from the desired exports and the actual host. Pure.
#include "base/diagnosis.hpp"
#include "exports/ask.hpp"
#include "exports/host.hpp"
#include "exports/server.hpp"
#include "plan/directory_access.hpp"
#include "plan/plan.hpp"
#include "sys/nfs/nfs_probe.hpp"
#include "sys/system.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::exports {

struct Request {
  std::vector<Export> exports;                                      ///< as they should be, by make_export()
  std::map<std::string, plan::DirectoryAccess, std::less<>> access; ///< by directory; one that is missing is kept as is
  std::vector<std::string> remove;       ///< directories whose exports are withdrawn; the directories themselves stay
  bool exactly = false;                  ///< the own file holds `exports` and nothing else (--all)
  bool recursive = false;                ///< access is also given to everything below the directory
  bool drop_adhoc = false;               ///< the reload may drop exports that stand in no file
  std::string config_file = {};          ///< the file that has the desired exports
  std::string address = {};              ///< of this host, by which clients reach it
  std::vector<std::string> members = {}; ///< users who work with directories that belong to a group
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

// Verifies after a change that the desired exports are in force. The exit code of exportfs does not show that, because
// exportfs drops hosts without an error; etab and the server's list do. Pure.

/// Compares the etab with the expected one: the own exports client by client (SF130, SF131), exports that should be
/// gone (SF134), and exports of other files that are not as expected (SF133, a warning, since undoing this change does
/// not cure that).
Diagnoses verify_etab(const Composed& composed, const HostFacts& facts, const std::vector<Export>& etab);

/// SF132: compares the directories of the own exports with the list that the server gives over the network. A server
/// that offers only NFS version 4 has no list; then only a failed stage of the probe is reported.
Diagnoses verify_listing(const Composed& composed, const HostFacts& facts, const sys::NfsProbe& probe);

/// SF156: checks that this server grants `members` the rights of the group to which an export belongs. A server looks
/// up a user's groups itself (`manage-gids` of rpc.mountd(8)), or takes the groups that the client sends, 16 at most. A
/// user for whom the name service gives no answer in time is left out.
Diagnoses diagnose_members(sys::System& system, const Request& request);

} // namespace sharefs::exports

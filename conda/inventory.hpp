#pragma once
// Every environment of the store, as this host sees it. Reads only, with deadlines: what does not answer is a row that
// says so.
#include "base/diagnosis.hpp"
#include "conda/environment_store.hpp"
#include "conda/link.hpp"
#include "sys/system.hpp"

#include <optional>
#include <string>
#include <vector>

namespace sharefs::conda {

enum class Availability {
  good,
  unmounted,  ///< the share that it lies on is not mounted here
  missing,    ///< a link that leads nowhere
  no_answer,  ///< a server that hangs
  unreadable, ///< not for this user
  incomplete, ///< without conda-meta, or a generation without a record
};
const char* to_string(Availability availability); ///< "good", "unmounted", "missing", "no answer", ...

/// A process that works with an environment.
struct Job {
  std::string host;
  int pid = 0;
  unsigned generation = 0;
  bool pinned = false;           ///< by `conda run`; others import what the link leads to later
  std::optional<bool> runs = {}; ///< nullopt: on another host, which alone knows
  friend bool operator==(const Job&, const Job&) = default;
};
template <FieldsOf<Job> J> auto fields(J& j) {
  return named("host", j.host, "pid", j.pid, "generation", j.generation, "pinned", j.pinned, "runs", j.runs);
}

struct ListedEnvironment {
  std::string name; ///< empty: the whole place could not be read
  std::string path;
  Availability availability = Availability::good;
  std::string detail;      ///< why it is not good
  unsigned generation = 0; ///< 0: not made of generations
  std::size_t generations = 0;
  std::optional<std::uint64_t> bytes, files; ///< by the generation's record
  std::optional<std::uint64_t> image_bytes;  ///< of its image; nullopt: it has none
  std::string python;
  std::int64_t verified = 0; ///< when the present generation was found good, seconds since 1970. 0: not known
  bool is_protected = false, has_guard = false;
  std::optional<sys::LeaseHolder> holder; ///< who changes it now
  std::vector<std::string> linked_by;     ///< users
  std::vector<Job> jobs;
};
/// Without `holder`.
template <FieldsOf<ListedEnvironment> E> auto fields(E& e) {
  return named("name", e.name, "path", e.path, "state", e.availability, "detail", e.detail, "generation", e.generation,
               "generations", e.generations, "bytes", e.bytes, "files", e.files, "image", e.image_bytes, "python",
               e.python, "linked_by", e.linked_by, "jobs", e.jobs, "protected", e.is_protected, "guard", e.has_guard,
               "verified", e.verified);
}

struct InventoryRequest {
  std::string store;
  std::string only;         ///< an environment's name; empty: all
  std::vector<Homes> homes; ///< who has conda where
  std::vector<Share> shares;
};

struct Inventory {
  std::string store;
  std::vector<ListedEnvironment> environments; ///< by name
  std::optional<sys::User> by;                 ///< as whom root has read the store
  bool denied = false;                         ///< to root, and to all users of `homes`
  Diagnoses found;                             ///< SF310, SF312, then SF320
  std::size_t problems = 0;                    ///< of `found`, those that keep something from being listed
};
Result<Inventory> probe_inventory(sys::System& system, const InventoryRequest& request);

} // namespace sharefs::conda

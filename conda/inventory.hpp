#pragma once
// Lists every environment of the store, as this host sees it. It only reads, with deadlines; an environment that does
// not answer is a row that says so.
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
  missing,    ///< there is no store, or the environment's link leads nowhere
  no_answer,  ///< the server did not answer in time
  unreadable, ///< this user may not read it
  incomplete, ///< it has no conda-meta, or its generation has no record
};
const char* to_string(Availability availability); ///< "good", "not mounted", "missing", "no answer", ...

/// A process that uses an environment.
struct Job {
  std::string host;
  int pid = 0;
  unsigned generation = 0;
  bool pinned = false;           ///< started by `conda run`; other processes follow the link after an update
  std::optional<bool> runs = {}; ///< nullopt: it is on another host, which alone knows that
  friend bool operator==(const Job&, const Job&) = default;
};
template <FieldsOf<Job> J> auto fields(J& j) {
  return named("host", j.host, "pid", j.pid, "generation", j.generation, "pinned", j.pinned, "runs", j.runs);
}

struct ListedEnvironment {
  std::string name; ///< empty: the whole place could not be read
  std::string path;
  Availability availability = Availability::good;
  std::string detail;      ///< the reason why it is not good
  unsigned generation = 0; ///< the present one; 0: the environment has no generations
  std::size_t generations = 0;
  std::optional<std::uint64_t> bytes, files; ///< by the generation's record
  std::optional<std::uint64_t> image_bytes;  ///< size of its image; nullopt: it has none
  std::string python;
  std::int64_t verified = 0; ///< time when the present generation was found good, seconds since 1970; 0: not known
  bool is_protected = false, has_guard = false;
  std::optional<sys::LeaseHolder> holder; ///< who changes it now
  std::vector<std::string> linked_by;     ///< users
  std::vector<Job> jobs;
};
/// All fields but `holder`.
template <FieldsOf<ListedEnvironment> E> auto fields(E& e) {
  return named("name", e.name, "path", e.path, "state", e.availability, "detail", e.detail, "generation", e.generation,
               "generations", e.generations, "bytes", e.bytes, "files", e.files, "image", e.image_bytes, "python",
               e.python, "linked_by", e.linked_by, "jobs", e.jobs, "protected", e.is_protected, "guard", e.has_guard,
               "verified", e.verified);
}

struct Inventory {
  std::string store;
  std::vector<ListedEnvironment> environments; ///< by name
  std::optional<sys::User> by;                 ///< the user as whom root has read the store
  bool denied = false;                         ///< root and the users of `homes` may not read the store
  Diagnoses found;                             ///< SF310, SF312, then SF320
  std::size_t problems = 0;                    ///< number of the first in `found`, which make the list incomplete
};
/// Reads the store, of it the environment that the request names or all, and the homes. Fails only if the mount table
/// cannot be read.
Result<Inventory> probe_inventory(sys::System& system, const LinkRequest& request);

} // namespace sharefs::conda

#pragma once
// sharefs.yaml as a value, with the defaults of its keys. Only src/cli includes it; each room gets its settings as
// types of its own.
#include "base/origin.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::config {

/// `access:` of an export, or of a share: who may use the directory.
struct Access {
  enum class Kind { keep, open, group };
  Kind kind = Kind::keep; ///< keep: unchanged; open: mode 1777; group: setgid and default ACLs
  std::string group;      ///< for Kind::group
  unsigned mode = 02770;  ///< for Kind::group
  bool sticky = false;    ///< for Kind::group: 1000 is added to the mode
  friend bool operator==(const Access&, const Access&) = default;
};

/// An element of `clients:`: one host given by its name, or several hosts with options of their own.
struct Client {
  std::vector<std::string> hosts;
  std::vector<std::string> options; ///< they come after those of the export
  Origin origin;
  friend bool operator==(const Client&, const Client&) = default;
};

struct Export {
  std::string name; ///< `server:path`, as mounts refer to it
  std::string path;
  std::vector<Client> clients;
  std::vector<std::string> options; ///< for all clients, as written; the exports room knows the defaults
  Access access;
  Origin origin;
  friend bool operator==(const Export&, const Export&) = default;
};

struct Server {
  std::string name;
  std::string address;
  std::vector<Export> exports;
  Origin origin;
  friend bool operator==(const Server&, const Server&) = default;
};

/// An element of `shares:`: a directory on a mounted share.
struct Share {
  std::string path; ///< below the mount point
  Access access;
  Origin origin;
  friend bool operator==(const Share&, const Share&) = default;
};

struct Mount {
  std::string name;
  std::string server;           ///< name of a server in this file, or a host that the file does not describe
  std::string address;          ///< the host to mount from
  std::string path;             ///< on the server
  std::string at;               ///< mount point
  std::string profile = "safe"; ///< safe, recipe, immutable
  std::vector<std::string> options;
  std::string boot = "none"; ///< none, auto, unit, automount, fstab or rc.local
  std::vector<Share> shares;
  Origin origin;
  friend bool operator==(const Mount&, const Mount&) = default;
};

/// An element of `envs:`: a name, or one with settings of its own.
struct Environment {
  std::string name;
  std::optional<unsigned> keep;
  std::optional<bool> protect;
  std::string stage; ///< empty: `conda.stage`
  Origin origin;
  friend bool operator==(const Environment&, const Environment&) = default;
};

/// Users who have conda in the same place.
struct Homes {
  std::vector<std::string> users;
  std::string conda = "miniconda3"; ///< below each home, or an absolute path
  Origin origin;
  friend bool operator==(const Homes&, const Homes&) = default;
};

struct Conda {
  std::string store; ///< where the shared environments are
  std::vector<Environment> envs;
  std::vector<Homes> homes;                       ///< no user is in two of them
  unsigned keep = 3;                              ///< generations that gc keeps
  bool protect = true;                            ///< generations have no write bits
  std::string stage = "/var/cache/sharefs/conda"; ///< node-local copies of generations
  std::string image = "zstd";    ///< "zstd": each generation gets an image, one file with all its files
  bool image_from_share = false; ///< `mount --all` mounts images from the share on nodes that have staged nothing
  Origin origin;
  friend bool operator==(const Conda&, const Conda&) = default;

  /// The settings that apply to one environment, whether `envs` lists it or not.
  struct Settings {
    unsigned keep;
    bool protect;
    std::string stage;
    bool image;
  };
  [[nodiscard]] Settings settings_of(std::string_view environment) const {
    for (const auto& one : envs)
      if (one.name == environment)
        return {one.keep.value_or(keep), one.protect.value_or(protect), one.stage.empty() ? stage : one.stage,
                image != "off"};
    return {keep, protect, stage, image != "off"};
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& one : envs)
      all.push_back(one.name);
    return all;
  }
  [[nodiscard]] std::vector<std::string> users() const {
    std::vector<std::string> all;
    for (const auto& place : homes)
      all.insert(all.end(), place.users.begin(), place.users.end());
    return all;
  }
};

/// A rule of the user's own for `sharefs run`: how it treats one flag of a program.
struct CacheRule {
  std::string program; ///< glob over the script's name; empty: every program
  std::string flag;    ///< `--cache_dir`
  std::string place;   ///< local or keep
  Origin origin;
  friend bool operator==(const CacheRule&, const CacheRule&) = default;
};

struct Caches {
  std::vector<std::string> local = {"/var/cache/sharefs"};
  std::string min_free = "1G";   ///< a size as parse_size() reads it
  std::string guard = "run";     ///< run, always (in shared environments, too), off
  std::string build = "publish"; ///< publish, unique, local
  std::string when = "shared";   ///< shared, racy
  std::vector<CacheRule> rules;
  friend bool operator==(const Caches&, const Caches&) = default;
};

/// An element of `nodes.list:`: names in the syntax of nodeset(1), or such names with settings of their own.
struct ListedNodes {
  std::string name; ///< "gpu[01-64]"
  std::string address;
  std::string user; ///< the user that ssh logs in as
  std::optional<unsigned> slots;
  Origin origin;
  friend bool operator==(const ListedNodes&, const ListedNodes&) = default;
};

/// A group of nodes with a name of its own.
struct NodeGroup {
  std::string name;
  std::vector<std::string> nodes;
  Origin origin;
  friend bool operator==(const NodeGroup&, const NodeGroup&) = default;
};

struct Nodes {
  std::vector<ListedNodes> list;
  std::string hostfile;
  std::string slurm;        ///< a partition
  std::string clustershell; ///< a group of ClusterShell: "@gpus"
  std::vector<NodeGroup> groups;
  friend bool operator==(const Nodes&, const Nodes&) = default;
};

/// A directory that every node keeps on its own disk, as a copy of the same directory on the machine that pushes it.
struct Mirror {
  std::string name;
  std::string path;
  bool removes = false;             ///< delete files on the nodes that the pushing machine does not have
  std::vector<std::string> exclude; ///< patterns of rsync(1)
  Origin origin;
  friend bool operator==(const Mirror&, const Mirror&) = default;
};

/// Where `sharefs stage`, which brings data to each node's own disk, keeps its files.
struct Stage {
  std::string store;              ///< directory of the images, on the share; empty: below `conda.store`
  std::string at;                 ///< directory of the copies, on each node; empty: below the first of `caches.local`
  std::vector<std::string> paths; ///< directories on the share over which the staged copy is mounted
  Origin origin;
  friend bool operator==(const Stage&, const Stage&) = default;
};

/// Settings of `sharefs watch`. If the section exists, `sharefs up` starts the daemon for the mounts.
struct Watch {
  std::string recover = "stale"; ///< stale, all, never
  std::string interval = "30s";  ///< a duration as parse_duration() reads it
  std::string textfile;          ///< of node_exporter; empty: none
  bool stage = false;            ///< environments are staged as soon as they change
  Origin origin;
  friend bool operator==(const Watch&, const Watch&) = default;
};

struct Config {
  int version = 1;
  std::string file;            ///< the file that was read; empty: all values are defaults
  std::vector<Server> servers; ///< in the order of the file
  std::vector<Mount> mounts;
  std::optional<Conda> conda;
  std::optional<Stage> stage;
  Caches caches;
  Nodes nodes;
  std::vector<Mirror> mirrors;
  std::optional<Watch> watch; ///< nullopt: `sharefs up` starts no daemon; one that is started by hand uses the defaults
  friend bool operator==(const Config&, const Config&) = default;
};

} // namespace sharefs::config

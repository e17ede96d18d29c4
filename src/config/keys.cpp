#include "config/fields.hpp"
#include "config/yaml_text.hpp"

#include "base/source.hpp"
#include "base/text.hpp"

#include <array>
#include <fmt/format.h>
#include <map>

namespace sharefs::config {

namespace {

using enum ValueType;
constexpr bool k_required = true;
constexpr bool k_optional = false;
constexpr bool k_unique = true;

constexpr Field k_mode{
    .get = [](const void* access) { return Texts{format_mode(in<&Access::mode>(access))}; },
    .set = [](void* access, const Texts& texts) { in<&Access::mode>(access) = parse_mode(texts.front()).value_or(0); },
    .defaults = defaults_of<Access>};

/// A word (keep, open), or a mapping for the kind `group`.
template <auto Member>
constexpr Field k_access{
    .get = [](const void* parent) { return Texts{in<Member>(parent).kind == Access::Kind::open ? "open" : "keep"}; },
    .set =
        [](void* parent, const Texts& texts) {
          in<Member>(parent).kind = texts.front() == "open" ? Access::Kind::open : Access::Kind::keep;
        },
    .add = [](void* parent, const std::string&, const Origin&) -> void* {
      in<Member>(parent).kind = Access::Kind::group;
      return &in<Member>(parent);
    },
    .items = [](const void* parent) -> std::vector<Item> {
      const auto& access = in<Member>(parent);
      return access.kind == Access::Kind::group ? std::vector<Item>{{{}, &access}} : std::vector<Item>{};
    },
    .defaults = defaults_of<ParentOf<Member>>};

constexpr Field k_from{.get =
                           [](const void* parent) {
                             const auto& mount = *static_cast<const Mount*>(parent);
                             return Texts{mount.server.empty() ? "" : format_source(mount.server, mount.path)};
                           },
                       .set =
                           [](void* parent, const Texts& texts) {
                             auto& mount = *static_cast<Mount*>(parent);
                             auto [server, remote_path] = parse_source(texts.front());
                             mount.server = std::move(server);
                             mount.path = std::move(remote_path);
                           },
                       .defaults = defaults_of<Mount>};

/// The same keys exist for an export and for a share.
constexpr std::string_view k_access_text =
    "who may use the directory: keep leaves it as it is, open makes it 1777 (everyone may write, and delete only what "
    "is theirs), {group, mode, sticky} gives it to a group, of which every member may then delete what another has "
    "made in it";
constexpr std::string_view k_group_text = "group that owns the directory";
constexpr std::string_view k_mode_text =
    "mode of the directory, octal and in quotes; 2 in front lets new files inherit the group, and its last digit is "
    "what everyone else may do, with new files too";
constexpr std::string_view k_sticky_text =
    "true: what lies directly in the directory can be deleted and renamed by its owner only (mode 3770); what lies "
    "deeper is still the group's";

// A parent must stand before its children; documentation and `config show` use the order of this table.
constexpr std::array k_keys{
    Key{"version", integer, k_required, "1", "version of this format", k_value<&Config::version>},

    Key{"servers", mapping, k_optional, "", "the machines that export directories, by name", k_same},
    Key{"servers.*", mapping, k_optional, "", "one server; mounts refer to it by this name", k_each<&Config::servers>},
    Key{"servers.*.address", text, k_optional, "",
        "host name or IP address that clients reach it by; without it the server's name is used",
        k_value<&Server::address>, host_rule},
    Key{"servers.*.exports[]", mapping, k_optional, "", "a directory that this server exports",
        k_each<&Server::exports>},
    Key{"servers.*.exports[].path", path, k_required, "", "the directory", k_value<&Export::path>, nullptr, k_unique},
    Key{"servers.*.exports[].clients[]", word_or_mapping, k_required, "",
        "who may mount it: hosts, CIDR networks, wildcards (quoted: `\"*\"`), @netgroups; {hosts, options} for hosts "
        "with options of their own",
        k_each<&Export::clients>, client_rule, k_unique},
    Key{"servers.*.exports[].clients[].hosts", text_list, k_required, "", "hosts that have these options",
        k_value<&Client::hosts>, client_rule, k_unique},
    Key{"servers.*.exports[].clients[].options", text_list, k_required, "",
        "options of exports(5) for these hosts; they come after those of the export and win over them",
        k_value<&Client::options>, option_rule},
    Key{"servers.*.exports[].options", text_list, k_optional, "",
        "export options of exports(5) for all clients; rw, sync, no_subtree_check and root_squash if there are none",
        k_value<&Export::options>, option_rule},
    Key{"servers.*.exports[].access", access, k_optional, "keep|open", k_access_text, k_access<&Export::access>},
    Key{"servers.*.exports[].access.group", text, k_required, "", k_group_text, k_value<&Access::group>, account_rule},
    Key{"servers.*.exports[].access.mode", mode, k_optional, "", k_mode_text, k_mode, mode_rule},
    Key{"servers.*.exports[].access.sticky", boolean, k_optional, "false|true", k_sticky_text,
        k_value<&Access::sticky>},

    Key{"mounts", mapping, k_optional, "", "what clients mount, by name", k_same},
    Key{"mounts.*", mapping, k_optional, "", "one mount; commands refer to it by this name", k_each<&Config::mounts>},
    Key{"mounts.*.from", remote, k_required, "", "SERVER:/PATH; SERVER is a name of servers: or any host", k_from,
        remote_rule},
    Key{"mounts.*.at", path, k_required, "", "mount point", k_value<&Mount::at>, mount_point_rule, k_unique},
    Key{"mounts.*.profile", choice, k_optional, "safe|recipe|immutable",
        "mount options: safe waits for a server that is away and is nosuid,nodev, recipe is rw,bg,soft,nolock as in "
        "the "
        "manual recipe, immutable is read-only with long caching",
        k_value<&Mount::profile>},
    Key{"mounts.*.options", text_list, k_optional, "", "further mount options of nfs(5); they win over the profile",
        k_value<&Mount::options>, option_rule},
    Key{"mounts.*.boot", choice, k_optional, "none|auto|unit|automount|fstab|rc.local",
        "what mounts it at boot; auto: systemd units that wait for the server, or rc.local where there is no systemd",
        k_value<&Mount::boot>},
    Key{"mounts.*.shares[]", mapping, k_optional, "",
        "a directory on what is mounted, for outputs or training scripts; `sharefs mount` makes it once the mount is "
        "there",
        k_each<&Mount::shares>},
    Key{"mounts.*.shares[].path", text, k_required, "", "the directory, below the mount point", k_value<&Share::path>,
        share_rule, k_unique},
    Key{"mounts.*.shares[].access", access, k_optional, "keep|open", k_access_text, k_access<&Share::access>},
    Key{"mounts.*.shares[].access.group", text, k_required, "", k_group_text, k_value<&Access::group>, account_rule},
    Key{"mounts.*.shares[].access.mode", mode, k_optional, "", k_mode_text, k_mode, mode_rule},
    Key{"mounts.*.shares[].access.sticky", boolean, k_optional, "false|true", k_sticky_text, k_value<&Access::sticky>},

    Key{"conda", mapping, k_optional, "", "shared conda environments", k_one<&Config::conda>},
    Key{"conda.store", path, k_required, "", "directory of the shared environments", k_value<&Conda::store>,
        below_root_rule},
    Key{"conda.envs[]", word_or_mapping, k_optional, "",
        "the environments that every home gets: names; {name, keep, protect, stage} for one with settings of its own",
        k_each<&Conda::envs>, environment_rule, k_unique},
    Key{"conda.envs[].name", text, k_required, "", "name of the environment", k_value<&Environment::name>,
        environment_rule, k_unique},
    Key{"conda.envs[].keep", integer, k_optional, "", "`conda.keep` for this environment", k_value<&Environment::keep>,
        count_rule},
    Key{"conda.envs[].protect", boolean, k_optional, "true|false", "`conda.protect` for this environment",
        k_value<&Environment::protect>},
    Key{"conda.envs[].stage", path, k_optional, "", "`conda.stage` for this environment", k_value<&Environment::stage>,
        below_root_rule},
    Key{"conda.keep", integer, k_optional, "",
        "how many of the last generations of an environment `sharefs conda gc` keeps, whether they are used or not",
        k_value<&Conda::keep>, count_rule},
    Key{"conda.protect", boolean, k_optional, "true|false",
        "true: what lies in a shared environment is writable for nobody, not for its owner either; `sharefs conda "
        "update` changes it",
        k_value<&Conda::protect>},
    Key{"conda.stage", path, k_optional, "",
        "directory on each node's own disk, in which `sharefs conda stage` copies environments", k_value<&Conda::stage>,
        below_root_rule},
    Key{"conda.image", choice, k_optional, "zstd|off",
        "zstd: each generation gets an image, one file with all of it, by which `sharefs conda stage` brings it to a "
        "node "
        "as fast as the wire allows; about a third of its size",
        k_value<&Conda::image>},
    Key{"conda.image_from_share", boolean, k_optional, "true|false",
        "true: `sharefs mount --all` and `up` mount the images of `conda.envs` where they lie on the share, on nodes "
        "that have staged nothing (no disk). While its server is away programs wait in the kernel, and SIGKILL does "
        "not end them. NFS 4 with `hard` only",
        k_value<&Conda::image_from_share>},
    Key{"conda.homes[]", mappings, k_optional, "",
        "the homes that get the links; a list where some users have conda in other places than others",
        k_each<&Conda::homes>},
    Key{"conda.homes[].users", text_list, k_optional, "", "users of this host", k_value<&Homes::users>, account_rule,
        k_unique},
    Key{"conda.homes[].conda", text, k_optional, "", "conda's directory, relative to each home or absolute",
        k_value<&Homes::conda>, conda_rule},

    Key{"caches", mapping, k_optional, "", "where `sharefs run` puts caches", k_one<&Config::caches>},
    Key{"caches.local", path_list, k_optional, "",
        "directory on a node's own disk, or a list of which the first usable one is taken; may hold "
        "variables of the batch system (`$SLURM_TMPDIR`), which must have the same value on all nodes of a job",
        k_value<&Caches::local>},
    Key{"caches.min_free", text, k_optional, "",
        "a directory with less free space is not used; a launch that finds none fails before it begins",
        k_value<&Caches::min_free>, size_rule},
    Key{"caches.guard", choice, k_optional, "run|always|off",
        "run: what `sharefs run` starts is guarded in its own process; always: what runs in shared environments, too; "
        "off: caches are moved by variables and flags only",
        k_value<&Caches::guard>},
    Key{"caches.build", choice, k_optional, "publish|unique|local",
        "where a dataset for a shared cache is built. publish: on the node's own disk, then copied to the share "
        "complete; unique: on the share, under a name of its own; local: on the node's own disk, where it stays",
        k_value<&Caches::build>},
    Key{"caches.when", choice, k_optional, "shared|racy",
        "shared: every cache on shared storage that nodes could destroy for each other; racy: only where the share's "
        "file locks do not exclude other hosts (NFS with nolock, and where that is not known)",
        k_value<&Caches::when>},
    Key{"caches.rules[]", mapping, k_optional, "", "a rule of your own for an option of a training program",
        k_each<&Caches::rules>},
    Key{"caches.rules[].program", text, k_optional, "", "name of the script, with wildcards; without it every program",
        k_value<&CacheRule::program>, program_rule},
    Key{"caches.rules[].flag", text, k_required, "", "the option whose value is a cache, such as --cache_dir",
        k_value<&CacheRule::flag>, flag_rule},
    Key{"caches.rules[].place", choice, k_required, "local|keep",
        "local: moved to the node's own disk; keep: left where it is", k_value<&CacheRule::place>},

    Key{"nodes", mapping, k_optional, "", "the machines of the cluster", k_one<&Config::nodes>},
    Key{"nodes.list[]", word_or_mapping, k_optional, "",
        "names, as nodeset(1) has them (`\"gpu[01-64]\"`); {name, address, user, slots} for nodes with settings of "
        "their own. Machines of `servers:` are nodes already",
        k_each<&Nodes::list>, nodes_rule, k_unique},
    Key{"nodes.list[].name", text, k_required, "", "names", k_value<&ListedNodes::name>, nodes_rule, k_unique},
    Key{"nodes.list[].address", text, k_optional, "", "where ssh connects to; without it the name",
        k_value<&ListedNodes::address>, host_rule},
    Key{"nodes.list[].user", text, k_optional, "", "user that ssh logs in as; without it ssh's own",
        k_value<&ListedNodes::user>, account_rule},
    Key{"nodes.list[].slots", integer, k_optional, "", "processes that a launcher starts there: its GPUs",
        k_value<&ListedNodes::slots>, count_rule},
    Key{"nodes.hostfile", path, k_optional, "",
        "file with a node in each line, as DeepSpeed (`NAME slots=N`), Open MPI and MPICH (`NAME:N`) read it",
        k_value<&Nodes::hostfile>},
    Key{"nodes.slurm", text, k_optional, "", "partition of Slurm, whose nodes these are", k_value<&Nodes::slurm>,
        partition_rule},
    Key{"nodes.clustershell", text, k_optional, "", "group of ClusterShell (`\"@gpus\"`), whose nodes these are",
        k_value<&Nodes::clustershell>, nodes_rule},
    Key{"nodes.groups[]", mapping, k_optional, "", "nodes that commands name together (`--on @NAME`)",
        k_each<&Nodes::groups>},
    Key{"nodes.groups[].name", text, k_required, "", "name of the group; not all, servers or clients",
        k_value<&NodeGroup::name>, group_rule, k_unique},
    Key{"nodes.groups[].nodes", text_list, k_required, "",
        "names of nodes, as in `nodes.list`, and groups (`\"clients!@a100\"`)", k_value<&NodeGroup::nodes>, nodes_rule},

    Key{"mirror", mapping, k_optional, "",
        "directories that `sharefs mirror` brings to nodes without a shared disk, by name", k_same},
    Key{"mirror.*", mapping, k_optional, "", "one of them; commands refer to it by this name",
        k_each<&Config::mirrors>},
    Key{"mirror.*.path", path, k_required, "", "the directory, the same on every node", k_value<&Mirror::path>,
        below_root_rule, k_unique},
    Key{"mirror.*.delete", boolean, k_optional, "false|true",
        "true: what a node has in it and the machine that is pushed from has not, is deleted there",
        k_value<&Mirror::removes>},
    Key{"mirror.*.exclude", text_list, k_optional, "",
        "what is left out, as patterns of rsync(1): `__pycache__/`, `*.tmp`", k_value<&Mirror::exclude>},

    Key{"stage", mapping, k_optional, "", "what `sharefs stage` brings to each node's own disk", k_one<&Config::stage>},
    Key{"stage.store", path, k_optional, "",
        "directory on the share for images of directories; without it `.images` in `conda.store`",
        k_value<&Stage::store>, below_root_rule},
    Key{"stage.at", path, k_optional, "",
        "directory on each node's own disk for the copies; without it `staged` in the first of `caches.local`, and for "
        "users `staged` in their own directory there",
        k_value<&Stage::at>, below_root_rule},
    Key{"stage.paths", text_list, k_optional, "",
        "directories on the share whose staged copy is mounted over them on this node, so that whoever asks for the "
        "path reads the copy, and cannot write there",
        k_value<&Stage::paths>},

    Key{"watch", mapping, k_optional, "",
        "what `sharefs watch` does with the mounts of this file; with it `sharefs up` starts that daemon",
        k_one<&Config::watch>},
    Key{"watch.recover", choice, k_optional, "stale|all|never",
        "stale: only mounts that are stale, and what a recovery has left unmounted; all: also what is missing, and "
        "what "
        "hangs at an address that its server has left; never: nothing is changed",
        k_value<&Watch::recover>},
    Key{"watch.interval", text, k_optional, "",
        "time between two looks at the mounts, from 1s to 1h; a change of the "
        "mount table is seen at once",
        k_value<&Watch::interval>, interval_rule},
    Key{"watch.textfile", path, k_optional, "",
        "file ending in .prom for node_exporter's textfile collector, on this machine's own disk; without it there are "
        "no metrics",
        k_value<&Watch::textfile>, textfile_rule},
    Key{"watch.stage", boolean, k_optional, "true|false",
        "true: each node stages `conda.envs` (without names all environments of the store) by itself, also after each "
        "update, as `sharefs conda stage --all` does",
        k_value<&Watch::stage>},
};

} // namespace

std::span<const Key> keys() {
  return k_keys;
}

const std::vector<const Key*>& children_of(std::string_view parent) {
  static const auto k_index = [] {
    std::map<std::string_view, std::vector<const Key*>> index;
    for (const auto& key : keys()) {
      const auto dot = key.name.rfind('.');
      index[dot == std::string_view::npos ? "" : key.name.substr(0, dot)].push_back(&key);
    }
    return index;
  }();
  static const std::vector<const Key*> k_none;
  const auto found = k_index.find(parent);
  return found == k_index.end() ? k_none : found->second;
}

std::string_view Key::last_name() const {
  const auto last = name.substr(name.rfind('.') + 1); // npos + 1 is 0
  return is_element() ? last.substr(0, last.size() - 2) : last;
}

std::vector<std::string> Key::choice_list() const {
  return choices.empty() ? std::vector<std::string>{} : split(choices, '|');
}

std::string Key::fallback() const {
  if (required || field.defaults == nullptr)
    return {};
  const auto values = field.get(field.defaults());
  if (values.empty())
    return is_list() ? "[]" : "";
  if (type == ValueType::boolean)
    return values.front();
  return values.front().empty() ? "" : yaml_scalar(values.front());
}

std::string Key::value_text(std::string_view quote) const {
  constexpr std::array<std::pair<ValueType, std::string_view>, 10> k_names{
      {{ValueType::text, "text"},
       {ValueType::remote, "text"},
       {ValueType::path, "path"},
       {ValueType::integer, "integer"},
       {ValueType::mode, "mode"},
       {ValueType::text_list, "list of text"},
       {ValueType::path_list, "path or list of paths"},
       {ValueType::mapping, "mapping"},
       {ValueType::mappings, "mapping or list of mappings"},
       {ValueType::word_or_mapping, "list of text or mappings"}}};
  if (type == ValueType::mapping && is_element())
    return "list of mappings";
  for (const auto& [known, words] : k_names)
    if (known == type)
      return std::string(words);
  const auto words = fmt::format("{0}{1}{0}", quote, join(choice_list(), fmt::format("{0}, {0}", quote)));
  return type == ValueType::access ? words + " or mapping" : words;
}

} // namespace sharefs::config

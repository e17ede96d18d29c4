#include "config/keys.hpp"

#include <array>

namespace sharefs::config {

namespace {

using enum ValueType;
constexpr bool k_required = true;
constexpr bool k_optional = false;

// A parent stands before its children; the order is that of the documentation and of `config show`.
constexpr std::array k_keys{
    Key{"version", integer, "", k_required, "1", "version of this format"},

    Key{"servers", mapping, "", k_optional, "", "the machines that export directories, by name"},
    Key{"servers.*", mapping, "", k_optional, "", "one server; mounts refer to it by this name"},
    Key{"servers.*.address", text, "", k_optional, "",
        "host name or IP address that clients reach it by; without it the server's name is used"},
    Key{"servers.*.exports[]", mapping, "", k_optional, "", "a directory that this server exports"},
    Key{"servers.*.exports[].path", path, "", k_required, "", "the directory"},
    Key{"servers.*.exports[].clients", text_list, "", k_required, "",
        "who may mount it: hosts, CIDR networks, wildcards (quoted: `\"*\"`), @netgroups"},
    Key{"servers.*.exports[].options", text_list, "[]", k_optional, "",
        "export options of exports(5); rw, sync, no_subtree_check and root_squash unless they say otherwise"},
    Key{"servers.*.exports[].access", access, "keep", k_optional, "keep|open",
        "who may use the directory: keep leaves it as it is, open makes it 0777, {group, mode} gives it to a group"},
    Key{"servers.*.exports[].access.group", text, "", k_required, "", "group that owns the directory"},
    Key{"servers.*.exports[].access.mode", mode, "\"2775\"", k_optional, "",
        "mode of the directory, octal and in quotes; 2 in front lets new files inherit the group"},

    Key{"mounts", mapping, "", k_optional, "", "what clients mount, by name"},
    Key{"mounts.*", mapping, "", k_optional, "", "one mount; commands refer to it by this name"},
    Key{"mounts.*.from", text, "", k_required, "", "SERVER:/PATH; SERVER is a name of servers: or any host"},
    Key{"mounts.*.at", path, "", k_required, "", "mount point"},
    Key{"mounts.*.profile", choice, "safe", k_optional, "safe|recipe|immutable",
        "mount options: safe waits for a server that is away, recipe is rw,bg,soft,nolock as in the manual recipe, "
        "immutable is read-only with long caching"},
    Key{"mounts.*.options", text_list, "[]", k_optional, "",
        "further mount options of nfs(5); they win over the profile"},
    Key{"mounts.*.boot", choice, "none", k_optional, "none|auto",
        "auto: mounted at boot by what this machine has for it"},

    Key{"conda", mapping, "", k_optional, "", "shared conda environments"},
    Key{"conda.store", path, "", k_required, "", "directory of the shared environments"},
    Key{"conda.envs", text_list, "[]", k_optional, "", "names of the environments that every home gets"},
    Key{"conda.link", choice, "each", k_optional, "each|whole",
        "each: one link per environment; whole: the envs directory is a link, as in the manual recipe"},
    Key{"conda.homes", mapping, "", k_optional, "", "the homes that get the links"},
    Key{"conda.homes.users", text_list, "[]", k_optional, "", "users of this host"},
    Key{"conda.homes.conda", text, "miniconda3", k_optional, "",
        "conda's directory, relative to each home or absolute"},

    Key{"caches", mapping, "", k_optional, "", "where `sharefs run` puts caches"},
    Key{"caches.local", path_list, "/var/cache/sharefs", k_optional, "",
        "directory on a node's own disk, or a list of which the usable one with the most free space is taken"},
    Key{"caches.min_free", text, "1G", k_optional, "",
        "a directory with less free space is not used; a launch that finds none fails before it begins"},
    Key{"caches.rules[]", mapping, "", k_optional, "", "a rule of your own for an option of a training program"},
    Key{"caches.rules[].program", text, "", k_optional, "",
        "name of the script, with wildcards; without it every program"},
    Key{"caches.rules[].flag", text, "", k_required, "", "the option whose value is a cache, such as --cache_dir"},
    Key{"caches.rules[].place", choice, "", k_required, "local|keep",
        "local: moved to the node's own disk; keep: left where it is"},

    Key{"nodes", mapping, "", k_optional, "", "the machines of the cluster"},
    Key{"nodes.hostfile", path, "", k_optional, "", "list of them in DeepSpeed's format (`NAME slots=N`)"},
};

} // namespace

std::span<const Key> keys() {
  return k_keys;
}

} // namespace sharefs::config

#include "cli/command.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace sharefs::cli {

// One line per command; each is defined in a file of src/cli/commands.
extern const CommandSpec k_init_command;
extern const CommandSpec k_up_command;
extern const CommandSpec k_down_command;
extern const CommandSpec k_export_command;
extern const CommandSpec k_export_check_command;
extern const CommandSpec k_mount_command;
extern const CommandSpec k_umount_command;
extern const CommandSpec k_recover_command;
extern const CommandSpec k_status_command;
extern const CommandSpec k_watch_command;
extern const CommandSpec k_probe_command;
extern const CommandSpec k_run_command;
extern const CommandSpec k_cachefix_script_command;
extern const CommandSpec k_env_command;
extern const CommandSpec k_cache_list_command;
extern const CommandSpec k_cache_place_command;
extern const CommandSpec k_cache_prune_command;
extern const CommandSpec k_conda_list_command;
extern const CommandSpec k_conda_run_command;
extern const CommandSpec k_conda_image_command;
extern const CommandSpec k_conda_stage_command;
extern const CommandSpec k_stage_command;
extern const CommandSpec k_nodes_serve_command;
extern const CommandSpec k_conda_link_command;
extern const CommandSpec k_conda_unlink_command;
extern const CommandSpec k_conda_update_command;
extern const CommandSpec k_conda_generations_command;
extern const CommandSpec k_conda_rollback_command;
extern const CommandSpec k_conda_gc_command;
extern const CommandSpec k_conda_share_command;
extern const CommandSpec k_conda_verify_command;
extern const CommandSpec k_conda_relocate_command;
extern const CommandSpec k_nodes_list_command;
extern const CommandSpec k_nodes_check_command;
extern const CommandSpec k_nodes_push_command;
extern const CommandSpec k_nodes_trust_command;
extern const CommandSpec k_nodes_grant_command;
extern const CommandSpec k_nodes_self_command;
extern const CommandSpec k_nodes_lease_command;
extern const CommandSpec k_nodes_lock_command;
extern const CommandSpec k_nodes_resume_command;
extern const CommandSpec k_mirror_push_command;
extern const CommandSpec k_mirror_verify_command;
extern const CommandSpec k_mirror_status_command;
extern const CommandSpec k_mirror_node_command;
extern const CommandSpec k_config_show_command;
extern const CommandSpec k_config_check_command;
extern const CommandSpec k_config_keys_command;
extern const CommandSpec k_doctor_command;
extern const CommandSpec k_explain_command;
extern const CommandSpec k_undo_command;

namespace {

const CommandSpec k_config_family{
    .name = "config",
    .summary = "Show and check sharefs.yaml",
    .description = "Prints the configuration with its defaults, checks it, and lists every key.",
};
const CommandSpec k_nodes_family{
    .name = "nodes",
    .summary = "The machines of the cluster; `--on NODES` in front of a command runs it on them",
    .description =
        "`nodes:` of sharefs.yaml names the machines. `--on NODES` runs a command on them: `sharefs --on all status`, "
        "`sharefs --on clients mount --all`. Changes go to servers first, then to one node, a tenth, and the rest.",
};
const CommandSpec k_mirror_family{
    .name = "mirror",
    .summary = "Directories on the nodes' own disks: bring them there, compare them, say who has which state",
    .description =
        "For nodes without a shared disk: `mirror:` of sharefs.yaml names directories (code, wheels, models, "
        "environments) that each node has at the same path, with the same owners and modes. rsync brings them there "
        "from this machine.",
};
const CommandSpec k_cache_family{
    .name = "cache",
    .summary = "List, delete and place the node-local caches that `run` made",
    .description =
        "`sharefs run` builds datasets on this node's own disk. These commands list what is stored there, and "
        "make room.",
};
const CommandSpec k_conda_family{
    .name = "conda",
    .summary = "Share conda environments: put them into the store, link, change and check them",
    .description =
        "One environment on the share, in every home, that many people use and somebody changes. Each change makes a "
        "new generation beside the old one, which users get in one moment; jobs that run keep theirs, and there is a "
        "way back. To begin: `share` moves an environment of a user into the store, `link` puts it into the homes of "
        "this host, `run` and conda's own `activate` use it, `update` changes it.",
};

} // namespace

const std::vector<CommandGroup>& command_groups() {
  static const std::vector<CommandGroup> k_groups{
      {"Set up",
       {&k_init_command, &k_up_command, &k_down_command, &k_export_command, &k_export_check_command, &k_mount_command,
        &k_umount_command, &k_config_family, &k_config_show_command, &k_config_check_command, &k_config_keys_command}},
      {"Look", {&k_doctor_command, &k_status_command, &k_probe_command, &k_explain_command}},
      {"Repair", {&k_recover_command, &k_watch_command, &k_undo_command}},
      {"Many machines",
       {&k_stage_command, &k_nodes_family, &k_nodes_list_command, &k_nodes_trust_command, &k_nodes_push_command,
        &k_nodes_check_command, &k_nodes_resume_command, &k_nodes_grant_command, &k_nodes_self_command,
        &k_nodes_serve_command, &k_nodes_lease_command, &k_nodes_lock_command, &k_mirror_family, &k_mirror_push_command,
        &k_mirror_status_command, &k_mirror_verify_command, &k_mirror_node_command}},
      {"Train",
       {&k_run_command, &k_env_command, &k_cachefix_script_command, &k_cache_family, &k_cache_list_command,
        &k_cache_prune_command, &k_cache_place_command}},
      {"Environments",
       {&k_conda_family, &k_conda_share_command, &k_conda_link_command, &k_conda_unlink_command, &k_conda_list_command,
        &k_conda_run_command, &k_conda_image_command, &k_conda_stage_command, &k_conda_update_command,
        &k_conda_rollback_command, &k_conda_generations_command, &k_conda_gc_command, &k_conda_verify_command,
        &k_conda_relocate_command}},
  };
  return k_groups;
}

const CommandSpec* find_row(std::string_view name) {
  for (const auto& group : command_groups())
    for (const auto* row : group.commands)
      if (row->name == name)
        return row;
  return nullptr;
}

std::vector<HelpRow> words_below(const std::string& prefix) {
  std::vector<HelpRow> found;
  const auto depth = split_words(prefix).size();
  for (const auto& group : command_groups())
    for (const auto* row : group.commands) {
      const auto parts = split_words(row->name);
      const bool below = parts.size() > depth && (prefix.empty() || row->name.starts_with(prefix + " "));
      if (below && std::ranges::find(found, parts[depth], &HelpRow::name) == found.end())
        found.push_back({depth == 0 ? std::string(group.title) : "Commands", parts[depth], std::string(row->summary)});
    }
  return found;
}

} // namespace sharefs::cli

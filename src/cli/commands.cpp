#include "cli/command.hpp"

namespace sharefs::cli {

// One line per command: where it is defined is src/cli/commands/NAME.cpp.
extern const CommandSpec k_init_command;
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
extern const CommandSpec k_cache_list_command;
extern const CommandSpec k_cache_prune_command;
extern const CommandSpec k_conda_list_command;
extern const CommandSpec k_conda_run_command;
extern const CommandSpec k_conda_stage_command;
extern const CommandSpec k_conda_link_command;
extern const CommandSpec k_conda_unlink_command;
extern const CommandSpec k_conda_update_command;
extern const CommandSpec k_conda_generations_command;
extern const CommandSpec k_conda_diff_command;
extern const CommandSpec k_conda_rollback_command;
extern const CommandSpec k_conda_pin_command;
extern const CommandSpec k_conda_unpin_command;
extern const CommandSpec k_conda_gc_command;
extern const CommandSpec k_conda_share_command;
extern const CommandSpec k_conda_purge_command;
extern const CommandSpec k_conda_verify_command;
extern const CommandSpec k_conda_relocate_command;
extern const CommandSpec k_config_show_command;
extern const CommandSpec k_config_check_command;
extern const CommandSpec k_config_schema_command;
extern const CommandSpec k_config_keys_command;
extern const CommandSpec k_doctor_command;
extern const CommandSpec k_explain_command;
extern const CommandSpec k_undo_command;

const std::vector<const CommandSpec*>& commands() {
  static const std::vector<const CommandSpec*> k_commands{
      &k_init_command,
      &k_export_command,
      &k_export_check_command,
      &k_mount_command,
      &k_umount_command,
      &k_recover_command,
      &k_status_command,
      &k_watch_command,
      &k_probe_command,
      &k_run_command,
      &k_cachefix_script_command,
      &k_cache_list_command,
      &k_cache_prune_command,
      &k_conda_list_command,
      &k_conda_run_command,
      &k_conda_stage_command,
      &k_conda_link_command,
      &k_conda_unlink_command,
      &k_conda_share_command,
      &k_conda_purge_command,
      &k_conda_update_command,
      &k_conda_rollback_command,
      &k_conda_generations_command,
      &k_conda_diff_command,
      &k_conda_pin_command,
      &k_conda_unpin_command,
      &k_conda_gc_command,
      &k_conda_verify_command,
      &k_conda_relocate_command,
      &k_config_show_command,
      &k_config_check_command,
      &k_config_schema_command,
      &k_config_keys_command,
      &k_doctor_command,
      &k_explain_command,
      &k_undo_command,
  };
  return k_commands;
}

} // namespace sharefs::cli

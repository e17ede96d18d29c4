#include "cli/command.hpp"

namespace sharefs::cli {

// One line per command: where it is defined is src/cli/NAME.cpp.
extern const CommandSpec k_init_command;
extern const CommandSpec k_export_command;
extern const CommandSpec k_export_check_command;
extern const CommandSpec k_mount_command;
extern const CommandSpec k_umount_command;
extern const CommandSpec k_recover_command;
extern const CommandSpec k_status_command;
extern const CommandSpec k_probe_command;
extern const CommandSpec k_run_command;
extern const CommandSpec k_conda_link_command;
extern const CommandSpec k_conda_unlink_command;
extern const CommandSpec k_config_show_command;
extern const CommandSpec k_config_check_command;
extern const CommandSpec k_config_schema_command;
extern const CommandSpec k_config_keys_command;
extern const CommandSpec k_undo_command;

const std::vector<const CommandSpec*>& commands() {
  static const std::vector<const CommandSpec*> k_commands{
#if __has_include("cli/init.cpp")
      &k_init_command,
#endif
#if __has_include("cli/export.cpp")
      &k_export_command,
#endif
#if __has_include("cli/export_check.cpp")
      &k_export_check_command,
#endif
#if __has_include("cli/mount.cpp")
      &k_mount_command,
#endif
#if __has_include("cli/umount.cpp")
      &k_umount_command,
#endif
#if __has_include("cli/recover.cpp")
      &k_recover_command,
#endif
#if __has_include("cli/status.cpp")
      &k_status_command,
#endif
#if __has_include("cli/probe.cpp")
      &k_probe_command,
#endif
#if __has_include("cli/run.cpp")
      &k_run_command,
#endif
#if __has_include("cli/conda_link.cpp")
      &k_conda_link_command,
#endif
#if __has_include("cli/conda_unlink.cpp")
      &k_conda_unlink_command,
#endif
#if __has_include("cli/config.cpp")
      &k_config_show_command,  &k_config_check_command, &k_config_schema_command, &k_config_keys_command,
#endif
#if __has_include("cli/undo.cpp")
      &k_undo_command,
#endif
  };
  return k_commands;
}

} // namespace sharefs::cli

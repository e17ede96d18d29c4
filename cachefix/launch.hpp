#pragma once
// One command line under judgement: its words, what is around it, and whom to ask. Internal to the heart.
#include "cachefix/sanitize.hpp"
#include "cachefix/shell/shell.hpp"

#include <set>

namespace sharefs::cachefix {

/// What the datasets library only reads where it is told to stay offline.
inline constexpr std::string_view k_read_offline = "HF_DATASETS_* HF_MODULES_CACHE HF_METRICS_CACHE HF_EVALUATE_CACHE";

using Environment = std::map<std::string, std::string, std::less<>>;

/// What a command is started in: what commands in front of it made of the environment, and what can be done for it.
struct Setting {
  Environment environment; ///< with k_unknown_part in a value that is not known
  std::string directory;
  std::string home;                     ///< by passwd
  bool in_text = false;                 ///< it stands in shell text: `NAME=value` can be put in front of it
  bool editable = true;                 ///< false: the text is only reported on
  bool outside = true;                  ///< a variable that is set around the text reaches the text
  bool alone = true;                    ///< and no other program in it that would see what is meant for this one
  bool can_write = true;                ///< false: nothing may rest on a new file or link (a script that runs later)
  bool elsewhere = false;               ///< it runs on other hosts, too
  bool unknown_nodes = false;           ///< on hosts that are not known now
  std::string input = {};               ///< what the text gives it to read; empty: nothing, or it is not known
  std::string file = {};                ///< in which the text stands that is only reported on
  std::set<std::string> assigned;       ///< variables that the text assigns: what is set around it is overridden
  std::set<std::string> functions = {}; ///< of the text: no programs
  int depth = 0;                        ///< of shell text inside of shell text
};

struct Found {
  Walk walk;
  std::vector<ScriptFound> scripts;
  Decisions decisions;
};

struct Launch {
  const Argv& argv;
  const Walk& walk;
  const Setting& setting;
  Stakes& stakes;
  const Rules& rules;

  /// The value of a variable as the program will see it; nullopt: not set or empty.
  [[nodiscard]] std::optional<std::string> variable(const Program& program, std::string_view name) const;
  /// The first of a list of names, `*` at their end, that it will see set; empty: none.
  [[nodiscard]] std::string first_variable(const Program& program, std::string_view names) const;
  [[nodiscard]] std::string home(const Program& program) const;
  /// A value as the program would resolve it: `~`, relative to its working directory; nullopt if it is no path (empty,
  /// a URL) or not known. `..` stays: it is resolved through links.
  [[nodiscard]] std::optional<std::string> absolute(const Program& program, const std::string& value) const;
  /// The same where it lies on shared storage; else nullopt.
  [[nodiscard]] std::optional<std::string> shared_path(const Program& program, const std::string& value) const;
  /// Where a command of this name may lie: at its path, or in the directories of PATH.
  [[nodiscard]] std::vector<std::string> paths_of(const Program& program, const std::string& command,
                                                  const std::string& if_no_path = "") const;
  /// The program's own file: a script that an interpreter runs, or a module in the working directory.
  [[nodiscard]] std::optional<std::string> script_path(const Program& program) const;
  /// Its source: of that file, of `python -c`, or what it reads from stdin; nullptr: it is not known.
  [[nodiscard]] const std::string* source_text(const Program& program) const;
  /// What its source shows; `parsed` is false where there is none.
  [[nodiscard]] const SourceFacts& source(const Program& program) const;
  /// The node-local directory for a shared path; empty: there is none.
  [[nodiscard]] std::string local_for(const std::string& shared_path, Holds holds = Holds::data) const;
  /// Is the datasets library told to stay offline? Then a complete dataset is only read. evaluate has a switch of its
  /// own; it keeps code in HF_MODULES_CACHE.
  [[nodiscard]] bool is_offline(const Program& program, std::string_view cache = {}) const;
  /// Is it certainly no program of Python's, nor does it start one?
  [[nodiscard]] bool runs_no_python(const Program& program) const;
  /// Will it read the variables that say where caches are? Python does, and what starts Python.
  [[nodiscard]] bool reads_caches(const Program& program) const;
};

Setting setting_of(const Start& start);

/// The heart: all that is decided about one command line. It asks `stakes`, and changes nothing.
Found decide(const Argv& argv, const Setting& setting, Stakes& stakes, const Rules& rules);

// Its parts.
Decisions decide_flags(const Launch& launch, const Program& program, const Framework* framework);
/// `so_far`: what was decided about the flags of the same program; a variable that it sets is not judged again.
Decisions decide_variables(const Launch& launch, const Program& program, const Framework* framework,
                           const Decisions& so_far);
/// The guard's variables, for all that may start Python.
Decisions decide_guard(const Launch& launch, const Program& program);
/// nullopt: it is no shell text, or cannot be read. `so_far`: what was decided about the words in front of it.
std::optional<Decisions> decide_shell(const Launch& launch, const Program& program, const Decisions& so_far,
                                      std::vector<ScriptFound>& scripts);

/// Where a shell text stands.
struct TextPlace {
  std::optional<std::size_t> index; ///< of the word of argv that is this text; nullopt: a file
  std::string subject;              ///< for messages: the file's name, or "bash -c"
  bool editable = true;             ///< false: a file that is only reported on
  bool sourced = false;             ///< what it assigns is judged where it is used
};

struct TextFound {
  std::string text; ///< with its changes
  Decisions decisions;
  std::vector<ScriptFound> scripts;
  std::size_t first_statement = 0;
  bool assigns_read_offline = false; ///< a variable of k_read_offline
};

/// `known`: the arguments of the text, as "1", "2", ...
TextFound judge_text(const std::string& text, const TextPlace& place, Setting setting, Stakes& stakes,
                     const Rules& rules, ShellVariables known = {});

/// What files of variables that launchers read add to the environment; says what nothing can be done about.
Decisions add_variable_files(const Launch& launch, Environment& environment);
/// The same of what the programs' own sources set. Paths that they write out are reported where they lie on the share.
Decisions add_source_caches(const Launch& launch, Environment& environment);

/// Nothing is changed, because reading it would cost too much.
Sanitized unread(const Argv& argv, const std::string& subject, const Budget& budget);
/// The decisions with what they come to: the words, the environment, what is to be made first.
Sanitized assemble(const Argv& argv, Decisions decisions, Stakes& stakes);
enum class Way { leave, in_place, drop };

/// What is at stake, and so what is done.
struct Verdict {
  Way way = Way::leave;
  std::string why;     ///< why it is left, or what is known of it; empty: the rule's own reason
  bool models = false; ///< it may hold models too
  std::optional<Decision> says = {};
};
/// Where nobody destroys anything at `path`: `offline` what is complete is only read; or caches.when is racy, and locks
/// exclude (`locked`: they are used). nullopt: nothing says so.
std::optional<Verdict> stays_safely(const Launch& launch, const std::string& name, const std::string& path,
                                    bool offline, bool locked = true);
/// Says that there is nowhere to move caches to.
Decision no_local_directory(const Launch& launch, Severity severity, Holds holds = Holds::data);
/// Is it said that something starts in a container?
bool is_in_container(const Decisions& decisions);
/// Says what lies in a shared cache from which the program is moved to `local`.
Decisions report_cache(const Launch& launch, const std::string& path, const std::string& local);
/// What it takes so that the variables that were set reach the programs: words for env, srun, mpirun and micromamba, a
/// file for deepspeed.
Decisions carry(const Launch& launch, const Decisions& decided);

/// Gives the program a variable: in the word that assigns it, in front of the command, or in the environment. Nothing
/// if it has that value. `own`: no other program may see it.
std::optional<Decision> set_variable(const Launch& launch, const Program& program, const std::string& name,
                                     const std::string& value, bool own = false);
Decision keep(std::string flag, std::optional<std::size_t> index, std::string value, CacheClass cache_class,
              std::string reason);
/// Is it a variable that says where a node-local cache is, or what such caches are made below?
bool is_moved(std::string_view variable);
/// `decision` gets its node-local directory.
void rest_on(Decision& decision, const std::string& directory, const std::string& shared_path);

/// `host slots=8` (DeepSpeed, Open MPI), `host:8` (MPICH, Intel); `#` begins a comment. Names in order, each once.
std::vector<std::string> parse_hostfile(std::string_view text);
/// `a,b:4` of `-H` and `--hosts`.
std::vector<std::string> parse_host_list(std::string_view text);
/// DeepSpeed's filters over the hosts of its file: `--include a@b:0,2` leaves these, `--exclude a@b:0` takes out those
/// that are named without slots (deepspeed/launcher/runner.py, parse_resource_filter).
std::vector<std::string> filter_hosts(std::vector<std::string> hosts, std::string_view include,
                                      std::string_view exclude);

/// Hosts of all launchers of a command line.
std::vector<std::string> hosts_of(const Launch& launch);
/// Does the launcher start the program on other hosts, as its hostfile or list of hosts says?
bool names_hosts(const Launch& launch, const ChainLink& link);
/// Is it a batch script, which some node runs some time?
bool starts_later(const Launch& launch, const Program& program);
/// Is this program on nodes that are not known now? By srun, and mpirun in an allocation, without a list of hosts.
bool on_unknown_nodes(const Launch& launch, const ChainLink& link);
/// Does it (also) run on hosts where sharefs is not?
bool runs_elsewhere(const Launch& launch, const Program& program);
/// Can variables be made to reach the program on every host?
bool can_carry(const Launch& launch, const Program& program);
/// True if a value can stand in .deepspeed_env, -x and --export lists as it is.
bool is_plain_value(const std::string& value);
/// `$NAME` where an expansion is not known.
std::string shown(std::string text);
/// Is a switch's value, in capitals or not, one of these words?
bool is_on(std::string value, std::string_view words);

} // namespace sharefs::cachefix

/* Stands in for every program that a launch line may start: writes one JSON line (argv, environment, directory) behind a
   log, starts what a real launcher would start, and exits with $STANDIN_EXIT, or 0.

   Launchers do not read their options here: what they start is the first word that names a program of this world. */
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

#ifndef PROGRAMS
#error the directory of the stand-ins
#endif

static const char k_starters[] =
    " srun mpirun mpiexec orterun horovodrun jsrun conda mamba micromamba uv poetry pixi hatch pipenv rye pdm nsys ncu "
    "py-spy coverage kernprof numactl singularity apptainer sudo flux perf valgrind gdb xvfb-run systemd-run rocprof aprun bsub ";
static const char k_shells[] = " bash sh dash env nohup nice time timeout stdbuf taskset numactl sharefs setsid ";

static int listed(const char *name, const char *list) {
  char word[300];
  snprintf(word, sizeof word, " %s ", name);
  return strstr(list, word) != NULL;
}

static const char *base(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

static int ends_with(const char *text, const char *end) {
  size_t a = strlen(text), b = strlen(end);
  return a >= b && strcmp(text + a - b, end) == 0;
}

static void put_string(FILE *out, const char *text) {
  fputc('"', out);
  for (const unsigned char *at = (const unsigned char *)text; *at != 0; ++at)
    if (*at == '"' || *at == '\\')
      fprintf(out, "\\%c", *at);
    else if (*at < 32)
      fprintf(out, "\\u%04x", *at);
    else
      fputc(*at, out);
  fputc('"', out);
}

static void put_list(FILE *out, char **list) {
  fputc('[', out);
  for (char **at = list; *at != NULL; ++at) {
    if (at != list)
      fputc(',', out);
    put_string(out, *at);
  }
  fputc(']', out);
}

static void record(char **argv) {
  char *text = NULL, directory[4096] = "";
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  if (getcwd(directory, sizeof directory) == NULL)
    directory[0] = 0;
  fputs("{\"argv\":", out);
  put_list(out, argv);
  fputs(",\"environment\":", out);
  put_list(out, environ);
  fputs(",\"directory\":", out);
  put_string(out, directory);
  fputs("}\n", out);
  fclose(out);
  const int log = open(PROGRAMS "/../starts", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (log < 0 || write(log, text, size) != (ssize_t)size)
    exit(99);
  close(log);
}

/* Does sharefs itself ask, as it may ask python3 to read a source, or srun for its options? Then it is no start. */
static int asked_by_sharefs(void) {
  char link[64], exe[4096];
  snprintf(link, sizeof link, "/proc/%d/exe", (int)getppid());
  const ssize_t size = readlink(link, exe, sizeof exe - 1);
  if (size <= 0)
    return 0;
  exe[size] = 0;
  return strcmp(base(exe), "sharefs") == 0;
}

static int is_program(const char *word) {
  char path[4096];
  if (word[0] == '-' || strchr(word, '=') != NULL)
    return 0;
  if (listed(base(word), k_shells))
    return 1;
  snprintf(path, sizeof path, PROGRAMS "/%s", base(word));
  return access(path, X_OK) == 0 || ((ends_with(word, ".sh") || ends_with(word, ".py")) && access(word, X_OK) == 0);
}

/* Becomes a program, with a word more: Python files are none by themselves here, and sharefs is to write its document. */
static void start(char **words) {
  char *longer[1000] = {NULL};
  const int is_python = ends_with(words[0], ".py"), is_sharefs = ends_with(words[0], "/sharefs");
  const int at = is_python ? 0 : 2;
  if (!is_python && !is_sharefs)
    execvp(words[0], words);
  for (int i = 0; words[i] != NULL && i < 990; ++i)
    longer[i < at ? i : i + 1] = words[i];
  longer[at] = is_python ? "python" : "--json";
  execvp(longer[0], longer);
}

/* `-x NAME=VALUE` of Open MPI, `-genv NAME VALUE` of MPICH. */
static void apply_mpi(char **argv) {
  for (char **at = argv + 1; at[0] != NULL && at[1] != NULL; ++at)
    if (strcmp(at[0], "-x") == 0 && strchr(at[1], '=') != NULL)
      putenv(at[1]);
    else if ((strcmp(at[0], "-genv") == 0 || strcmp(at[0], "-env") == 0) && at[2] != NULL)
      setenv(at[1], at[2], 1);
}

static int has_word(char **argv, const char *word) {
  for (; *argv != NULL; ++argv)
    if (strcmp(*argv, word) == 0)
      return 1;
  return 0;
}

/* `--export=LIST` of Slurm: ALL, NONE, or names and NAME=value. Only Slurm's own variables come besides. */
static void apply_export(const char *list) {
  int all = strcmp(list, "NIL") != 0;
  char *copy = strdup(list), *rest = NULL;
  char *kept[4096];
  int count = 0;
  if (strncmp(list, "ALL", 3) == 0) {
    for (char *name = strtok_r(copy, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest))
      if (strchr(name, '=') != NULL)
        putenv(name);
    return;
  }
  static const char *const k_always[] = {"PATH", "HOME", "USER"};
  for (char **at = environ; *at != NULL && count < 4000; ++at)
    if (strncmp(*at, "SLURM_", 6) == 0)
      kept[count++] = *at;
  for (size_t i = 0; i < sizeof k_always / sizeof *k_always; ++i) {
    const char *value = getenv(k_always[i]);
    char *entry = NULL;
    if (value != NULL && asprintf(&entry, "%s=%s", k_always[i], value) > 0)
      kept[count++] = entry;
  }
  if (strcmp(list, "NONE") != 0 && all)
    for (char *name = strtok_r(copy, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
      char *entry = name;
      const char *value = getenv(name);
      if (strchr(name, '=') != NULL || (value != NULL && asprintf(&entry, "%s=%s", name, value) > 0))
        kept[count++] = entry;
    }
  clearenv();
  for (int i = 0; i < count; ++i)
    putenv(kept[i]);
}

static void start_as_slurm(char **argv, int batch) {
  const char *wrap = NULL, *list = NULL;
  int script = 0;
  for (int i = 1; argv[i] != NULL && script == 0; ++i) {
    if (strncmp(argv[i], "--export=", 9) == 0)
      list = argv[i] + 9;
    else if (strcmp(argv[i], "--export") == 0 && argv[i + 1] != NULL)
      list = argv[i + 1];
    else if (strncmp(argv[i], "--wrap=", 7) == 0)
      wrap = argv[i] + 7;
    else if (strcmp(argv[i], "--wrap") == 0 && argv[i + 1] != NULL)
      wrap = argv[++i];
    else if (batch ? access(argv[i], R_OK) == 0 && argv[i][0] != '-' && !ends_with(argv[i], "/")
                       && (ends_with(argv[i], "sh") || ends_with(argv[i], ".sbatch") || ends_with(argv[i], ".slurm"))
                   : is_program(argv[i]))
      script = i;
  }
  if (list != NULL)
    apply_export(list);
  setenv("SLURM_JOB_ID", "42", 1);
  if (batch && wrap != NULL)
    execlp("/bin/sh", "sh", "-c", wrap, (char *)NULL);
  if (script == 0)
    return;
  if (!batch)
    start(argv + script);
  char *shell[1000] = {"bash"};
  for (int i = 0; argv[script + i] != NULL && i < 990; ++i)
    shell[i + 1] = argv[script + i];
  execv("/bin/bash", shell);
}

int main(int argc, char **argv) {
  const char *name = base(argv[0]);
  (void)argc;
  if (asked_by_sharefs()) {
    if (strncmp(name, "python", 6) == 0)
      execv("/usr/bin/python3", argv);
    return 0;
  }
  record(argv);
  if (strcmp(name, "scontrol") == 0)
    puts("node1\nnode2");
  else if (strcmp(name, "nvidia-smi") == 0)
    puts("GPU 0: A\nGPU 1: B");
  else if (strcmp(name, "conda") == 0 && argv[1] != NULL && strncmp(argv[1], "shell.", 6) == 0)
    puts("conda() { if [ \"$1\" = run ]; then command conda \"$@\"; fi; }");
  else if (strcmp(name, "srun") == 0 || strcmp(name, "sbatch") == 0)
    start_as_slurm(argv, name[1] == 'b');
  else if (listed(name, k_starters) || has_word(argv, "--no_python") || has_word(argv, "--no-python")) {
    if (strncmp(name, "mpi", 3) == 0)
      apply_mpi(argv);
    for (char **at = argv + 1; *at != NULL; ++at)
      if (is_program(*at)) {
        start(at);
        break;
      }
  }
  const char *code = getenv("STANDIN_EXIT");
  return code == NULL ? 0 : atoi(code);
}

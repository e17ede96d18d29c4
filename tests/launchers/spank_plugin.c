/* A site's own options of srun and sbatch: one that takes a value, one that takes none, and one that takes a value
 * which the help does not show. The job sees their values. */
#include <slurm/spank.h>

#include <stddef.h>

SPANK_PLUGIN(sharefs_lab, 1);

static int accept(int value, const char* text, int remote) {
  (void)value, (void)text, (void)remote;
  return ESPANK_SUCCESS;
}

static struct spank_option options[] = {
    {"quotatype", "TYPE", "reserved, auto or spot", 1, 0, accept},
    {"private-tmp", NULL, "a /tmp of the job's own", 0, 1, accept},
    {"site-queue", NULL, "where it waits", 1, 2, accept},
    SPANK_OPTIONS_TABLE_END,
};

int slurm_spank_init(spank_t spank, int count, char** arguments) {
  (void)count, (void)arguments;
  for (struct spank_option* one = options; one->name != NULL; ++one) {
    const slurm_err_t failed = spank_option_register(spank, one);
    if (failed != ESPANK_SUCCESS)
      return failed;
  }
  return ESPANK_SUCCESS;
}

// SPDX-License-Identifier: GPL-2.0
/* Counters, in debugfs: stats and costs, in the folder of the module's name. */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "cipherlane.h"

atomic64_t cl_stats[CL_STATS];

static const char *const cl_stat_names[CL_STATS] = {
	[CL_STAT_ENCRYPTED] = "encrypted",
	[CL_STAT_DECRYPTED] = "decrypted",
	[CL_STAT_BYTES] = "bytes",
	[CL_STAT_BAD_TAGS] = "bad_tags",
	[CL_STAT_ZERO_COPY] = "zero_copy",
	[CL_STAT_BOUNCED] = "bounced",
	[CL_STAT_SELFTEST] = "selftest",
	[CL_STAT_QUEUED] = "queued",
	[CL_STAT_BACKLOGGED] = "backlogged",
	[CL_STAT_KEYS] = "keys",
	[CL_STAT_DOORBELLS] = "doorbells",
	[CL_STAT_INTERRUPTS] = "interrupts",
	[CL_STAT_SPURIOUS_INTERRUPTS] = "spurious_interrupts",
	[CL_STAT_LOST_INTERRUPTS] = "lost_interrupts",
	[CL_STAT_POLLS] = "polls",
	[CL_STAT_FOUND_IDLE] = "found_idle",
	[CL_STAT_MISSED_IDLE] = "missed_idle",
	[CL_STAT_SPURIOUS_COMPLETIONS] = "spurious_completions",
	[CL_STAT_TIMEOUTS] = "timeouts",
	[CL_STAT_RESETS] = "resets",
	[CL_STAT_UNANSWERED_RESETS] = "unanswered_resets",
	[CL_STAT_AUDITED] = "audited",
	[CL_STAT_WRONG] = "wrong",
	[CL_STAT_SOFTWARE_SMALL] = "software_small",
	[CL_STAT_SOFTWARE_OFF] = "software_off",
	[CL_STAT_SOFTWARE_DOWN] = "software_down",
	[CL_STAT_SOFTWARE_KEY] = "software_key",
	[CL_STAT_SOFTWARE_SHAPE] = "software_shape",
	[CL_STAT_SOFTWARE_FULL] = "software_full",
	[CL_STAT_SOFTWARE_FAILED] = "software_failed",
	[CL_STAT_SOFTWARE_BYTES] = "software_bytes",
};

static struct dentry *cl_folder;

static int stats_show(struct seq_file *file, void *unused)
{
	int i;

	for (i = 0; i < CL_STATS; i++)
		seq_printf(file, "%s %lld\n", cl_stat_names[i], atomic64_read(&cl_stats[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static int costs_show(struct seq_file *file, void *unused)
{
	cl_show_costs(file);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(costs);

void cl_stats_init(void)
{
	cl_folder = debugfs_create_dir(CL_NAME, NULL);
	debugfs_create_file("stats", 0444, cl_folder, NULL, &stats_fops);
	debugfs_create_file("costs", 0444, cl_folder, NULL, &costs_fops);
}

void cl_stats_exit(void)
{
	debugfs_remove(cl_folder);
}

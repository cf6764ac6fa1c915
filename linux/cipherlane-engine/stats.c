// SPDX-License-Identifier: GPL-2.0
/* Counters, in debugfs: cipherlane_engine/stats and /costs. */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "engine.h"

atomic64_t cle_stats[CLE_STATS];

static const char *const cle_stat_names[CLE_STATS] = {
	[CLE_STAT_ENCRYPTED] = "encrypted",
	[CLE_STAT_DECRYPTED] = "decrypted",
	[CLE_STAT_BYTES] = "bytes",
	[CLE_STAT_ZERO_COPY] = "zero_copy",
	[CLE_STAT_BOUNCED] = "bounced",
	[CLE_STAT_SELFTEST] = "selftest",
	[CLE_STAT_QUEUED] = "queued",
	[CLE_STAT_BACKLOGGED] = "backlogged",
	[CLE_STAT_KEYS] = "keys",
	[CLE_STAT_INTERRUPTS] = "interrupts",
	[CLE_STAT_SPURIOUS_INTERRUPTS] = "spurious_interrupts",
	[CLE_STAT_LOST_INTERRUPTS] = "lost_interrupts",
	[CLE_STAT_POLLS] = "polls",
	[CLE_STAT_SPURIOUS_COMPLETIONS] = "spurious_completions",
	[CLE_STAT_TIMEOUTS] = "timeouts",
	[CLE_STAT_RESETS] = "resets",
	[CLE_STAT_UNANSWERED_RESETS] = "unanswered_resets",
	[CLE_STAT_SOFTWARE_SMALL] = "software_small",
	[CLE_STAT_SOFTWARE_OFF] = "software_off",
	[CLE_STAT_SOFTWARE_DOWN] = "software_down",
	[CLE_STAT_SOFTWARE_KEY] = "software_key",
	[CLE_STAT_SOFTWARE_SHAPE] = "software_shape",
	[CLE_STAT_SOFTWARE_FULL] = "software_full",
	[CLE_STAT_SOFTWARE_FAILED] = "software_failed",
	[CLE_STAT_SOFTWARE_BYTES] = "software_bytes",
};

static struct dentry *cle_folder;

static int stats_show(struct seq_file *file, void *unused)
{
	int i;

	for (i = 0; i < CLE_STATS; i++)
		seq_printf(file, "%s %lld\n", cle_stat_names[i], atomic64_read(&cle_stats[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static int costs_show(struct seq_file *file, void *unused)
{
	cle_show_costs(file);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(costs);

void cle_stats_init(void)
{
	cle_folder = debugfs_create_dir(CLE_NAME, NULL);
	debugfs_create_file("stats", 0444, cle_folder, NULL, &stats_fops);
	debugfs_create_file("costs", 0444, cle_folder, NULL, &costs_fops);
}

void cle_stats_exit(void)
{
	debugfs_remove(cle_folder);
}

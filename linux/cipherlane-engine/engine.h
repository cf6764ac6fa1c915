/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The driver's own structures.
 *
 *	main.c		the PCI device: probe, removal, parameters
 *	ring.c		the two rings, interrupts, timeouts, resets
 *	request.c	from a request of the CryptoAPI to a slot, and back
 *	alg.c		the algorithms, their keys, and the choice of a way
 *	cost.c		what each way costs, measured: the threshold
 *	stats.c		counters in debugfs
 *
 * The algorithms outlive the device: a user of the CryptoAPI that has one keeps it
 * when the device is removed, and is then served by software. So they are
 * registered with the first device and unregistered with the module, which cannot
 * be unloaded before its last user is gone. Whoever uses the device finds it through
 * cle_active, under RCU.
 */
#ifndef CLE_ENGINE_H
#define CLE_ENGINE_H

#include <crypto/aes.h>
#include <crypto/algapi.h>
#include <crypto/internal/skcipher.h>
#include <linux/interrupt.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "wire.h"

#define CLE_NAME		"cipherlane_engine"

/* Why software served a request; and what else is counted. */
enum cle_stat {
	CLE_STAT_ENCRYPTED,
	CLE_STAT_DECRYPTED,
	CLE_STAT_BYTES,
	CLE_STAT_ZERO_COPY,
	CLE_STAT_BOUNCED,
	CLE_STAT_SELFTEST,
	CLE_STAT_QUEUED,
	CLE_STAT_BACKLOGGED,
	CLE_STAT_KEYS,
	CLE_STAT_INTERRUPTS,
	CLE_STAT_SPURIOUS_INTERRUPTS,
	CLE_STAT_LOST_INTERRUPTS,
	CLE_STAT_POLLS,
	CLE_STAT_SPURIOUS_COMPLETIONS,
	CLE_STAT_TIMEOUTS,
	CLE_STAT_RESETS,
	CLE_STAT_UNANSWERED_RESETS,
	CLE_STAT_SOFTWARE_SMALL,
	CLE_STAT_SOFTWARE_OFF,
	CLE_STAT_SOFTWARE_DOWN,
	CLE_STAT_SOFTWARE_KEY,
	CLE_STAT_SOFTWARE_SHAPE,
	CLE_STAT_SOFTWARE_FULL,
	CLE_STAT_SOFTWARE_FAILED,
	CLE_STAT_SOFTWARE_BYTES,
	CLE_STATS
};

extern atomic64_t cle_stats[CLE_STATS];

static inline void cle_count(enum cle_stat stat)
{
	atomic64_inc(&cle_stats[stat]);
}

static inline void cle_add(enum cle_stat stat, u64 number)
{
	atomic64_add(number, &cle_stats[stat]);
}

enum cle_phase {
	CLE_SLOT_FREE,
	CLE_SLOT_FILLING,	/* belongs to whoever fills it */
	CLE_SLOT_FLYING,	/* belongs to the device */
	CLE_SLOT_ENDED,		/* belongs to whoever ends it */
	CLE_SLOT_WITHHELD,	/* the device may still write to its bounce buffer */
};

/* A request in the device, or on its way there or back. */
struct cle_slot {
	struct list_head list;
	enum cle_phase phase;
	u16 id;
	u16 turn;
	u32 epoch;
	u32 session;
	u32 status;
	enum cle_opcode opcode;
	unsigned long since;			/* jiffies */
	struct skcipher_request *req;		/* NULL for keys */
	u32 descriptors;
	u32 bounced;				/* bytes that are in the bounce buffer */
	bool out_bounced;
	int src_nents;				/* as given to dma_map_sg(); 0: bounced */
	int dst_nents;
	int src_mapped;				/* as returned by it */
	int dst_mapped;
	void *bounce;
	dma_addr_t bounce_dma;
};

enum cle_state {
	CLE_UP,
	CLE_RESETTING,
	CLE_DOWN,
};

struct cle_device {
	struct pci_dev *pdev;
	void __iomem *doorbell;
	void __iomem *bar;
	int irq;

	/* What the device said of itself, read once and checked. */
	u64 features;
	u32 ring;
	u32 alignment;
	u32 block;
	u32 segment;
	u32 max_request;
	u32 sessions;
	u32 key_bits;

	spinlock_t lock;			/* all of the following */
	enum cle_state state;
	bool broken;				/* it wrote nonsense */
	bool stopping;				/* it is being removed */
	u32 epoch;				/* another one after each reset */
	u32 tail;				/* descriptors made */
	u32 reserved;				/* descriptors promised, not yet made */
	struct cle_slot *slots;
	unsigned int depth;
	struct list_head free;
	unsigned int free_count;
	unsigned int flying;
	struct crypto_queue queue;
	struct skcipher_request *next;		/* taken from the queue, waits for room */
	unsigned long *used_sessions;
	unsigned long *stale_sessions;		/* to be wiped in the device */
	unsigned long *bad_sessions;		/* refused by the device */
	unsigned long progress;			/* jiffies: it last ended something */

	u32 head;				/* completions seen; of the tasklet */
	unsigned int idle_polls;		/* of the tasklet */
	bool interrupted;			/* the tasklet runs because of an interrupt */
	bool kicked;				/* it runs because an interrupt seems to be lost */
	u32 ticks_head;				/* completions seen at the last tick */
	bool ticks_waiting;			/* others were waiting then */

	struct tasklet_struct tasklet;
	struct workqueue_struct *workqueue;
	struct delayed_work watch;
	u32 reset;				/* number of the last one */
	unsigned int pause_ms;			/* until another try */
	unsigned long retry;			/* jiffies */
	wait_queue_head_t idle;
};

struct cle_alg {
	struct skcipher_alg skcipher;
	enum cle_algorithm number;
	bool registered;
};

/* A key of a user. */
struct cle_ctx {
	struct crypto_skcipher *fallback;
	enum cle_algorithm alg;
	u32 epoch;				/* for which the device has it; 0: none */
	u32 session;
	unsigned int key_len;
	u8 key[2 * AES_MAX_KEY_SIZE];
	atomic_t flying;
	u32 decisions;
	u32 burst;				/* 0..15: gives more before it has the first */
	int force;				/* of the measurement: a way, or -1 */
	u64 last_ns;				/* of the measurement: the last request's time */
};

/* Of a request, in the memory that its user has allocated with it. */
struct cle_req {
	u64 since_ns;
	u32 ahead;				/* requests under way when it was given */
	bool encrypt;
	u8 iv[AES_BLOCK_SIZE];			/* the IV of what would follow */
	struct skcipher_request fallback;	/* its own context follows */
};

/* What becomes of a request. */
struct cle_plan {
	bool in_direct;
	bool out_direct;
	int src_nents;
	int dst_nents;
	u32 descriptors;
};

/* main.c */
extern struct cle_device __rcu *cle_active;
extern bool cle_enabled;
extern int cle_threshold;
extern bool cle_bounce_output;
extern unsigned int cle_timeout_ms;
extern unsigned int cle_reset_ms;
extern unsigned int cle_priority;

/* ring.c */
int cle_ring_init(struct cle_device *dev, unsigned int depth, size_t bounce);
void cle_ring_stop(struct cle_device *dev);
int cle_ring_reset(struct cle_device *dev);
irqreturn_t cle_interrupt(int irq, void *data);
int cle_submit(struct cle_device *dev, struct skcipher_request *req);
void cle_forget_session(struct cle_ctx *ctx);

/* request.c */
extern size_t cle_bounce_len;
bool cle_plan_request(struct cle_device *dev, struct skcipher_request *req,
		      struct cle_plan *plan);
int cle_fill(struct cle_device *dev, struct cle_slot *slot, const struct cle_plan *plan);
void cle_write_chain(struct cle_device *dev, struct cle_slot *slot);
void cle_write_key(struct cle_device *dev, struct cle_slot *slot, struct cle_ctx *ctx);
void cle_unmap(struct cle_device *dev, struct cle_slot *slot);
void cle_finish(struct cle_device *dev, struct cle_slot *slot);

/* alg.c */
int cle_register_algs(struct cle_device *dev);
void cle_unregister_algs(void);
int cle_software(struct skcipher_request *req, enum cle_stat why);
void cle_finish_in_software(struct skcipher_request *req, enum cle_stat why);

/* cost.c */
enum cle_way {
	CLE_WAY_SOFTWARE,
	CLE_WAY_ENGINE,		/* the caller waits for the result */
	CLE_WAY_ENGINE_BUSY,	/* the caller has several requests under way */
	CLE_WAYS
};

enum cle_way cle_choose(struct cle_ctx *ctx, bool encrypt, unsigned int len);
void cle_learn(struct cle_ctx *ctx, bool encrypt, unsigned int len, enum cle_way way, u64 ns);
void cle_learn_engine(struct cle_ctx *ctx, struct skcipher_request *req);
void cle_calibrate(u32 key_bits, u64 features);
void cle_show_costs(struct seq_file *file);

/* stats.c */
void cle_stats_init(void);
void cle_stats_exit(void);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the drivers of this directory share: all that does not depend on how a device
 * is spoken to. Each driver compiles it into its module (common.c there) and gives a
 * cl_device the operations of its transport.
 *
 *	alg.c		the algorithms, their keys, and the choice of a way
 *	aead.c		those that authenticate
 *	queue.c		slots, and the queue before them
 *	lists.c		scatter lists: what lies over what
 *	completion.c	what the device has ended
 *	audit.c		results of the device that software makes again
 *	device.c	a device that begins
 *	recovery.c	timeouts, resets, removal
 *	cost.c		what each way costs, learned: the threshold
 *	calibrate.c	the first measurement of it
 *	stats.c		counters in debugfs
 *	switches.c	parameters of the module
 *
 * The algorithms outlive the device: a user of the CryptoAPI that has one keeps it
 * when the device is removed, and is then served by software. So they are
 * registered with the first device and unregistered with the module, which cannot
 * be unloaded before its last user is gone. Whoever uses the device finds it through
 * cl_active, under RCU.
 */
#ifndef CIPHERLANE_H
#define CIPHERLANE_H

#include <crypto/aes.h>
#include <crypto/algapi.h>
#include <crypto/internal/aead.h>
#include <crypto/internal/skcipher.h>
#include <crypto/sha2.h>
#include <linux/device.h>
#include <linux/interrupt.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

/* CL_NAME and CL_SUFFIX: of the module, and of the names of its algorithms. */
#include "names.h"
#include "audit.h"

/* Numbered as in crates/dma-model/src/transport/wire.rs, which has more of them. */
enum cl_algorithm {
	CL_ECB_AES,
	CL_CBC_AES,
	CL_CTR_AES,
	CL_XTS_AES,
	CL_GCM_AES,
	CL_RFC4106_GCM_AES,
	CL_AUTHENC_SHA256_CBC_AES = 9,
	CL_ALGORITHMS
};

static inline bool cl_is_aead(enum cl_algorithm alg)
{
	return alg >= CL_GCM_AES;
}

/* Bytes of the IV of a request. */
static inline u8 cl_iv_len(enum cl_algorithm alg)
{
	switch (alg) {
	case CL_ECB_AES:
		return 0;
	case CL_GCM_AES:
		return 12;
	case CL_RFC4106_GCM_AES:
		return 8;
	default:
		return AES_BLOCK_SIZE;
	}
}

/* The longest key: that of HMAC-SHA-256 and one of AES. XTS has two of AES. */
#define CL_KEY_MAX	(SHA256_DIGEST_SIZE + AES_MAX_KEY_SIZE)
/* Additional data that the device is given at most. */
#define CL_ASSOC_MAX	4096

/* Why software served a request; and what else is counted. */
enum cl_stat {
	CL_STAT_ENCRYPTED,
	CL_STAT_DECRYPTED,
	CL_STAT_BYTES,
	CL_STAT_BAD_TAGS,
	CL_STAT_ZERO_COPY,
	CL_STAT_BOUNCED,
	CL_STAT_SELFTEST,
	CL_STAT_QUEUED,
	CL_STAT_BACKLOGGED,
	CL_STAT_KEYS,
	CL_STAT_DOORBELLS,
	CL_STAT_INTERRUPTS,
	CL_STAT_SPURIOUS_INTERRUPTS,
	CL_STAT_LOST_INTERRUPTS,
	CL_STAT_POLLS,
	CL_STAT_FOUND_IDLE,
	CL_STAT_MISSED_IDLE,
	CL_STAT_SPURIOUS_COMPLETIONS,
	CL_STAT_TIMEOUTS,
	CL_STAT_RESETS,
	CL_STAT_UNANSWERED_RESETS,
	CL_STAT_AUDITED,
	CL_STAT_WRONG,
	CL_STAT_SOFTWARE_SMALL,
	CL_STAT_SOFTWARE_OFF,
	CL_STAT_SOFTWARE_DOWN,
	CL_STAT_SOFTWARE_KEY,
	CL_STAT_SOFTWARE_SHAPE,
	CL_STAT_SOFTWARE_FULL,
	CL_STAT_SOFTWARE_FAILED,
	CL_STAT_SOFTWARE_BYTES,
	CL_STATS
};

extern atomic64_t cl_stats[CL_STATS];

static inline void cl_count(enum cl_stat stat)
{
	atomic64_inc(&cl_stats[stat]);
}

static inline void cl_add(enum cl_stat stat, u64 number)
{
	atomic64_add(number, &cl_stats[stat]);
}

enum cl_phase {
	CL_SLOT_FREE,
	CL_SLOT_FILLING,	/* belongs to whoever fills it */
	CL_SLOT_FLYING,		/* belongs to the device */
	CL_SLOT_ENDED,		/* belongs to whoever ends it */
	CL_SLOT_WITHHELD,	/* the device may still write to its bounce buffer */
};

enum cl_operation {
	CL_ENCRYPT,
	CL_DECRYPT,
	CL_LOAD_KEY,
	CL_WIPE_KEY,
	CL_PROBE,		/* whether the device is there: a key is wiped that never was */
};

enum cl_result {
	CL_DONE,
	CL_BAD_TAG,
	CL_NO_SESSION,		/* the device does not know the key */
	CL_FAILED,
};

/* A request in the device, or on its way there or back. */
struct cl_slot {
	struct list_head list;
	enum cl_phase phase;
	u16 id;
	u16 turn;
	u32 epoch;
	u32 session;
	enum cl_operation operation;
	enum cl_result result;
	unsigned long since;			/* jiffies */
	struct cl_req *req;			/* NULL for keys */
	u32 units;				/* of the transport's ring */
	u32 bounced;				/* bytes that are in the bounce buffer */
	u32 plain;				/* of these, what must not stay there */
	bool out_bounced;
	void *bounce;
	void *transport;			/* what the transport needs for it */
};

enum cl_state {
	CL_UP,
	CL_RESETTING,
	CL_DOWN,
};

/* What becomes of a request. */
struct cl_plan {
	bool in_direct;
	bool out_direct;
	int src_nents;
	int dst_nents;
	u32 units;
};

enum cl_reset {
	CL_RESET_WORKS,		/* it begins anew */
	CL_RESET_STANDS,	/* it touches no memory any more, and does not work */
	CL_RESET_SILENT,	/* nobody knows what it does */
};

struct cl_device;
struct cl_ctx;

/* The transport: how a device is spoken to. */
struct cl_ops {
	/* What goes where it lies. False: the device cannot take it at all. */
	bool (*plan)(struct cl_device *dev, struct cl_req *req, struct cl_plan *plan);
	/* Maps and copies. */
	int (*fill)(struct cl_device *dev, struct cl_slot *slot, const struct cl_plan *plan);
	void (*unfill)(struct cl_device *dev, struct cl_slot *slot);
	/* Under the lock: units for which there is room. */
	u32 (*room)(struct cl_device *dev);
	/* Under the lock: a request, or a key (of @ctx; NULL: to be wiped), is the device's. */
	int (*give)(struct cl_device *dev, struct cl_slot *slot);
	int (*give_key)(struct cl_device *dev, struct cl_slot *slot, struct cl_ctx *ctx);
	/* The copy of a key that stands in a slot is wiped. */
	void (*wipe_copy)(struct cl_device *dev, struct cl_slot *slot);
	/*
	 * Has the device begin with what it was given; if not @now, the transport may wait for
	 * more. Under RCU, by the tasklet or the watch.
	 */
	void (*announce)(struct cl_device *dev, bool now);
	/* Takes completions, by cl_ended(). Returns how many there were. */
	u32 (*collect)(struct cl_device *dev, struct list_head *ended);
	/* Whether completions may wait, so that somebody should look. */
	bool (*waits)(struct cl_device *dev);
	/* Interrupts on. False: something came before that. */
	bool (*listen)(struct cl_device *dev);
	/* Takes everything back, and has it begin anew if @again. */
	enum cl_reset (*reset)(struct cl_device *dev, bool again);
};

struct cl_device {
	struct device *parent;
	const struct cl_ops *ops;

	/* What the device said of itself, read once and checked. */
	u64 features;				/* a bit for each cl_algorithm */
	u32 max_request;
	u32 sessions;
	u32 key_bits;				/* 128, 192, 256; 0: all */

	spinlock_t lock;			/* all of the following */
	enum cl_state state;
	bool broken;				/* it wrote nonsense */
	bool held;				/* what is given is announced later, together */
	bool given;				/* something was given meanwhile */
	bool closed;				/* nothing new is given to it */
	bool stopping;				/* it is being removed, or it sleeps */
	u32 epoch;				/* another one after each reset */
	u32 reserved;				/* units promised, not yet used */
	struct cl_slot *slots;
	unsigned int depth;
	size_t bounce_len;
	struct list_head free;
	unsigned int free_count;
	unsigned int flying;
	struct crypto_queue queue;
	struct crypto_async_request *next;	/* taken from the queue, waits for room */
	unsigned long *used_sessions;
	unsigned long *stale_sessions;		/* to be wiped in the device */
	unsigned long *bad_sessions;		/* refused by the device */
	u16 *session_users;			/* requests that have not come back */
	unsigned long progress;			/* jiffies: it last ended something */
	u32 seen;				/* completions */
	struct cl_audit audit;

	unsigned int idle_polls;		/* of the tasklet */
	bool interrupted;			/* the tasklet runs because of an interrupt */
	bool kicked;				/* it runs because an interrupt seems to be lost */
	u32 ticks_seen;				/* completions seen at the last tick */
	bool ticks_waiting;			/* others were waiting then */

	struct tasklet_struct tasklet;
	struct workqueue_struct *workqueue;
	struct delayed_work watch;
	unsigned int pause_ms;			/* until another try */
	unsigned long retry;			/* jiffies */
	bool resting;				/* the watch is set for a heartbeat */
	unsigned int heartbeat_ms;		/* between probes of an idle device; 0: none */
	wait_queue_head_t idle;
};

/* A key of a user. */
struct cl_ctx {
	union {
		struct crypto_skcipher *skcipher;
		struct crypto_aead *aead;
	} fallback;
	enum cl_algorithm alg;
	u32 epoch;				/* for which the device has it; 0: none */
	u32 session;
	bool has_odd_key;			/* of a length that only software takes */
	unsigned int aes_len;
	unsigned int key_len;
	unsigned int tag_len;
	u8 key[CL_KEY_MAX];
	atomic_t flying;
	u32 decisions;
	u32 burst;				/* 0..15: gives more before it has the first */
	int force;				/* of the measurement: a way, or -1 */
	u64 last_ns;				/* of the measurement: the last request's time */
};

/*
 * Of a request, in the memory that its user has allocated with it. In both lists @skip
 * bytes stand before the payload; the first @aad_len of these are authenticated.
 */
struct cl_req {
	struct crypto_async_request *base;
	struct cl_ctx *ctx;
	struct scatterlist *src;
	struct scatterlist *dst;
	u8 *iv;
	u32 skip;
	u32 aad_len;
	u32 len;				/* of the payload, without a tag */
	u32 in_len;				/* with the tag, when it is compared */
	u32 out_len;				/* with the tag, when it is made */
	bool encrypt;
	bool audited;				/* software makes the result again */
	u32 ahead;				/* requests under way when it was given */
	u64 since_ns;
	u8 next_iv[AES_BLOCK_SIZE];		/* the IV of what would follow */
	union {					/* its own context follows */
		struct skcipher_request skcipher;
		struct aead_request aead;
	} fallback;
};

static inline struct cl_req *cl_req_of(struct crypto_async_request *base)
{
	if (crypto_tfm_alg_type(base->tfm) == CRYPTO_ALG_TYPE_AEAD)
		return aead_request_ctx(container_of(base, struct aead_request, base));
	return skcipher_request_ctx(skcipher_request_cast(base));
}

/* switches.c */
extern bool cl_enabled;
extern int cl_threshold;
extern bool cl_bounce_output;
extern unsigned int cl_audit_every;
extern unsigned int cl_timeout_ms;
extern unsigned int cl_priority;
extern unsigned int cl_depth;
extern unsigned int cl_bounce_kib;

/* queue.c */
extern struct cl_device __rcu *cl_active;
int cl_submit(struct cl_device *dev, struct cl_req *req);
void cl_pump(struct cl_device *dev);
void cl_hold(struct cl_device *dev);
void cl_let_go(struct cl_device *dev);
void cl_forget_session(struct cl_ctx *ctx);
void cl_release(struct cl_device *dev, struct cl_slot *slot);
void cl_watch_soon(struct cl_device *dev);
void cl_probe(struct cl_device *dev);

/* lists.c */
bool cl_overlaps(struct scatterlist *a, struct scatterlist *b, u32 len);
void cl_copy_in(struct cl_slot *slot);

/* completion.c */
void cl_ended(struct cl_device *dev, struct cl_slot *slot, enum cl_result result,
	      struct list_head *ended);
void cl_interrupted(struct cl_device *dev);
void cl_end(struct cl_device *dev, struct list_head *ended);

/* device.c */
int cl_queue_init(struct cl_device *dev, struct device *parent, const struct cl_ops *ops,
		  unsigned int depth);
void cl_add_slot(struct cl_device *dev, struct cl_slot *slot, void *bounce, void *transport);

/* recovery.c */
void cl_watch(struct work_struct *work);
int cl_start(struct cl_device *dev);
void cl_stop(struct cl_device *dev);
void cl_sleep(struct cl_device *dev);
void cl_wake(struct cl_device *dev);
int cl_activate(struct cl_device *dev);
void cl_deactivate(struct cl_device *dev);

/* alg.c, aead.c */
int cl_register_algs(struct cl_device *dev);
void cl_unregister_algs(void);
int cl_crypt(struct cl_req *req);
int cl_software(struct cl_req *req, enum cl_stat why);
void cl_finish_in_software(struct cl_req *req, enum cl_stat why);
void cl_finish(struct cl_slot *slot);
int cl_run_fallback(struct cl_req *req, u32 flags, crypto_completion_t complete, void *data);
int cl_aead_fallback(struct cl_req *req, u32 flags, crypto_completion_t complete, void *data);
int cl_register_aeads(struct cl_device *dev);
void cl_unregister_aeads(void);

/* stats.c */
void cl_stats_init(void);
void cl_stats_exit(void);

#include "cost.h"

#endif

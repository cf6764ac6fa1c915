/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The transport's own structures; the rest is in ../common.
 *
 *	main.c		the virtio device: probe, removal, sleep
 *	ring.c		the virtqueues, the hello, the reset
 *	chain.c		requests that gather, and go out together
 *	worker.c	what is done when the processor is idle
 *	request.c	from a request of the CryptoAPI to pieces of memory
 *	compat.h	what differs between versions of Linux
 */
#ifndef CLV_VIRTIO_H
#define CLV_VIRTIO_H

#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/virtio.h>

#include "cipherlane.h"
#include "wire.h"

/* Pieces of memory of one side of a request. */
#define CLV_PIECES	64
/* What the device has not written. */
#define CLV_NO_STATUS	0xff
/* Requests of a chain; the back-end may take fewer. */
#define CLV_TOGETHER	64
/* Chains of a queue that are under way, of requests and of keys. */
#define CLV_CHAINS	16
/* What has gathered is sent when it is that much, in requests or bytes. */
#define CLV_ENOUGH	32
#define CLV_ENOUGH_LEN	(256 << 10)
/* A timer looks whether more has come: what is held is sent if not, and at the last look. */
#define CLV_LOOK_NS	500000
#define CLV_LOOKS	4
/* Queues that are used, if there are as many processors. */
#define CLV_QUEUES	16
/* The queue of a key that every queue may use. */
#define CLV_ANY_QUEUE	0xff

/* What is one chain of descriptors: requests, or the opening or closing of a session. */
struct clv_chain {
	struct list_head list;			/* while it is free */
	struct list_head slots;			/* what ends with it */
	unsigned int count;			/* requests; 0 for a key */
	u32 written;				/* bytes that the device writes */
	struct scatterlist head;		/* what the device reads first */
	struct scatterlist tail;		/* statuses */
	struct scatterlist *lists[2 * (CLV_TOGETHER + 1)];
	struct clv_header header;
	union {
		struct clv_entry entries[CLV_TOGETHER];
		u8 key[CL_KEY_MAX];
	};
	u8 status[CLV_TOGETHER + 1];		/* of the requests, and of the chain */
};

struct clv_queue {
	struct virtqueue *vq;			/* NULL while the device is down */
	struct list_head free;			/* chains */
	struct list_head gathered;		/* slots that wait for the next chain */
	unsigned int gathered_count;
	u32 gathered_len;
	u32 gathered_units;
	bool held;				/* what has gathered waits for more */
	unsigned int held_count;		/* of it, when the timer looked last */
	unsigned int held_looks;		/* that are left */
	unsigned int alone;			/* chains that go at once: holding was in vain */
	bool is_under_way;			/* a chain of requests */
	bool is_fresh;				/* the device was not told of the last chain */
	struct kthread_worker *worker;		/* sends when its processor is idle */
	struct kthread_work work;
	struct hrtimer timer;			/* sends when it is busy */
	struct clv_device *dev;
};

struct clv_device {
	struct cl_device common;
	struct virtio_device *vdev;
	struct clv_queue queues[CLV_QUEUES];	/* under the lock of common */
	unsigned int found;			/* queues */
	unsigned int queue_count;		/* of these, the first ones that the back-end has */
	unsigned int together;			/* requests of a chain at most */
	u8 *key_queues;				/* of each session: where its key is on its way */
	bool opened;				/* the hello was answered */
	struct clv_header hello;
	struct clv_hello answer;
	u8 status;
};

static inline struct clv_device *clv_of(struct cl_device *dev)
{
	return container_of(dev, struct clv_device, common);
}

/* What a slot needs: what is said of its request, and lists of its memory. */
struct clv_slot {
	struct clv_entry entry;
	int out_count;
	int in_count;
	struct scatterlist out[CLV_PIECES];	/* the device reads it */
	struct scatterlist in[CLV_PIECES];	/* the device writes it */
};

/* ring.c */
extern const struct cl_ops clv_ops;
void clv_announce(struct cl_device *common, bool now);
int clv_open(struct clv_device *dev);
void clv_close(struct clv_device *dev);

/* chain.c */
int clv_add_chains(struct clv_device *dev);
void clv_drop_chains(struct clv_device *dev, struct clv_queue *queue);
int clv_give(struct cl_device *common, struct cl_slot *slot);
int clv_give_key(struct cl_device *common, struct cl_slot *slot, struct cl_ctx *ctx);
void clv_wipe_copy(struct cl_device *common, struct cl_slot *slot);
bool clv_has_to_send(struct clv_queue *queue, bool now);
bool clv_holds_on(struct clv_queue *queue);
void clv_send(struct clv_device *dev, struct clv_queue *queue, bool now);
u32 clv_end_chain(struct clv_device *dev, struct clv_queue *queue, struct clv_chain *chain,
		  u32 written, struct list_head *ended);

/* worker.c */
int clv_start_workers(struct clv_device *dev);
void clv_stop_workers(struct clv_device *dev);

/* request.c */
bool clv_plan(struct cl_device *common, struct cl_req *req, struct cl_plan *plan);
int clv_fill(struct cl_device *common, struct cl_slot *slot, const struct cl_plan *plan);
void clv_unfill(struct cl_device *common, struct cl_slot *slot);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The transport's own structures; the rest is in ../common.
 *
 *	main.c		the virtio device: probe, removal
 *	ring.c		the virtqueue, the hello, the reset
 *	request.c	from a request of the CryptoAPI to a chain of descriptors
 */
#ifndef CLV_VIRTIO_H
#define CLV_VIRTIO_H

#include <linux/virtio.h>

#include "cipherlane.h"
#include "wire.h"

/* Pieces of memory of one side of a request. */
#define CLV_PIECES	64
/* What the device has not written. */
#define CLV_NO_STATUS	0xff

struct clv_device {
	struct cl_device common;
	struct virtio_device *vdev;
	struct virtqueue *vq;			/* under the lock; NULL while the device is down */
	bool opened;				/* the hello was answered */
	struct clv_header hello;
	struct clv_hello answer;
	u8 status;
};

static inline struct clv_device *clv_of(struct cl_device *dev)
{
	return container_of(dev, struct clv_device, common);
}

/* What a slot needs: memory that the device reads and writes, and lists of it. */
struct clv_slot {
	struct clv_header header;
	union {
		struct clv_entry entry;
		u8 key[CL_KEY_MAX];
	};
	u8 status[2];				/* of the request, and of the chain */
	struct scatterlist out[1 + CLV_PIECES];	/* the device reads it */
	struct scatterlist in[CLV_PIECES + 1];	/* the device writes it */
};

/* ring.c */
extern const struct cl_ops clv_ops;
int clv_open(struct clv_device *dev);
void clv_close(struct clv_device *dev);

/* request.c */
bool clv_plan(struct cl_device *common, struct cl_req *req, struct cl_plan *plan);
int clv_fill(struct cl_device *common, struct cl_slot *slot, const struct cl_plan *plan);
void clv_unfill(struct cl_device *common, struct cl_slot *slot);
int clv_give(struct cl_device *common, struct cl_slot *slot);
int clv_give_key(struct cl_device *common, struct cl_slot *slot, struct cl_ctx *ctx);
void clv_wipe_copy(struct cl_device *common, struct cl_slot *slot);
enum cl_result clv_result(const struct cl_slot *slot, u32 written);

#endif

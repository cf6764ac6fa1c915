// SPDX-License-Identifier: GPL-2.0
/* A device that begins: its queue, its tasklet, and memory for all that it will have under way. */
#include <linux/bitmap.h>

#include "cipherlane.h"

/* Requests that wait for room, beside those of users that can wait themselves. */
#define CL_QUEUE	256

static u32 cl_epochs;

/* After what the device says of itself was read. Its slots are added then. */
int cl_queue_init(struct cl_device *dev, struct device *parent, const struct cl_ops *ops,
		  unsigned int depth)
{
	dev->parent = parent;
	dev->ops = ops;
	spin_lock_init(&dev->lock);
	INIT_LIST_HEAD(&dev->free);
	init_waitqueue_head(&dev->idle);
	tasklet_setup(&dev->tasklet, cl_tasklet);
	INIT_DELAYED_WORK(&dev->watch, cl_watch);
	crypto_init_queue(&dev->queue, CL_QUEUE);
	dev->state = CL_DOWN;
	dev->retry = jiffies;
	/* Far from those of other devices: a key that was loaded there is not here. */
	cl_epochs += 1 << 20;
	dev->epoch = cl_epochs;
	dev->bounce_len = (size_t)clamp(cl_bounce_kib, 4U, 1024U) << 10;
	dev->slots = devm_kcalloc(parent, depth, sizeof(*dev->slots), GFP_KERNEL);
	dev->used_sessions = devm_bitmap_zalloc(parent, dev->sessions, GFP_KERNEL);
	dev->stale_sessions = devm_bitmap_zalloc(parent, dev->sessions, GFP_KERNEL);
	dev->bad_sessions = devm_bitmap_zalloc(parent, dev->sessions, GFP_KERNEL);
	dev->session_users = devm_kcalloc(parent, dev->sessions, sizeof(*dev->session_users),
					  GFP_KERNEL);
	if (!dev->slots || !dev->used_sessions || !dev->stale_sessions || !dev->bad_sessions ||
	    !dev->session_users)
		return -ENOMEM;
	dev->workqueue = alloc_workqueue(CL_NAME, WQ_MEM_RECLAIM | WQ_HIGHPRI, 1);
	return dev->workqueue ? cl_audit_init(dev) : -ENOMEM;
}

/* Memory is there from the beginning: a request that writes a page out must not need any. */
void cl_add_slot(struct cl_device *dev, struct cl_slot *slot, void *bounce, void *transport)
{
	slot->id = slot - dev->slots;
	slot->bounce = bounce;
	slot->transport = transport;
	list_add_tail(&slot->list, &dev->free);
	dev->free_count++;
	dev->depth++;
}

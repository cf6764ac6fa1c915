// SPDX-License-Identifier: GPL-2.0
/* When the device does not answer, and when it goes. */
#include <linux/bitmap.h>
#include <linux/module.h>

#include "cipherlane.h"

/* A request that is this number of timeouts old is lost, even if others come back. */
#define CL_PATIENCE	4
#define CL_FIRST_PAUSE	1000U
#define CL_LAST_PAUSE	60000U

static DEFINE_MUTEX(cl_mutex);

static void cl_abort(struct cl_device *dev, struct list_head *aborted, enum cl_reset reset)
{
	struct cl_slot *slot, *next;

	list_for_each_entry_safe(slot, next, aborted, list) {
		struct cl_req *req = slot->req;

		list_del(&slot->list);
		if (req) {
			dev->ops->unfill(dev, slot);
			atomic_dec(&req->ctx->flying);
			cl_drop_audit(dev, req);
			cl_finish_in_software(req, CL_STAT_SOFTWARE_FAILED);
		} else {
			dev->ops->wipe_copy(dev, slot);
		}
		if (reset != CL_RESET_SILENT || !slot->bounced) {
			cl_release(dev, slot);
		} else {
			/* A device that is only late would write over another's copy. */
			slot->req = NULL;
			slot->phase = CL_SLOT_WITHHELD;
		}
	}
}

/*
 * Takes everything back from the device, and makes it work again if @again and if it
 * answers. Its requests are done by software: their input is intact.
 */
static void cl_recover(struct cl_device *dev, bool again)
{
	LIST_HEAD(ended);
	LIST_HEAD(aborted);
	struct cl_slot *slot;
	enum cl_reset reset;
	unsigned int i;

	spin_lock_bh(&dev->lock);
	dev->state = CL_RESETTING;
	spin_unlock_bh(&dev->lock);
	tasklet_disable(&dev->tasklet);
	/* What it has reported is reported. */
	dev->seen += dev->ops->collect(dev, &ended);
	cl_count(CL_STAT_RESETS);
	reset = dev->ops->reset(dev, again);
	if (reset != CL_RESET_WORKS)
		cl_count(CL_STAT_UNANSWERED_RESETS);

	spin_lock_bh(&dev->lock);
	dev->epoch++;
	dev->epoch += !dev->epoch;
	WRITE_ONCE(dev->broken, false);
	bitmap_zero(dev->used_sessions, dev->sessions);
	bitmap_zero(dev->stale_sessions, dev->sessions);
	bitmap_zero(dev->bad_sessions, dev->sessions);
	memset(dev->session_users, 0, dev->sessions * sizeof(*dev->session_users));
	for (i = 0; i < dev->depth; i++) {
		slot = &dev->slots[i];
		if (slot->phase == CL_SLOT_WITHHELD && reset != CL_RESET_SILENT) {
			slot->phase = CL_SLOT_FREE;
			list_add(&slot->list, &dev->free);
			dev->free_count++;
		} else if (slot->phase == CL_SLOT_FLYING) {
			slot->phase = CL_SLOT_ENDED;
			list_add_tail(&slot->list, &aborted);
		}
	}
	dev->flying = 0;
	dev->state = reset == CL_RESET_WORKS && again ? CL_UP : CL_DOWN;
	spin_unlock_bh(&dev->lock);

	if (reset == CL_RESET_WORKS) {
		dev->pause_ms = 0;
	} else if (again) {
		dev->pause_ms = clamp(2 * dev->pause_ms, CL_FIRST_PAUSE, CL_LAST_PAUSE);
		dev->retry = jiffies + msecs_to_jiffies(dev->pause_ms);
		dev_warn_ratelimited(dev->parent,
				     "no answer: software serves, another try in %u ms\n",
				     dev->pause_ms);
	}
	cl_end(dev, &ended);
	cl_abort(dev, &aborted, reset);
	tasklet_enable(&dev->tasklet);
	cl_pump(dev);
	wake_up(&dev->idle);
}

static bool cl_is_overdue(struct cl_device *dev)
{
	unsigned long timeout = msecs_to_jiffies(clamp(cl_timeout_ms, 10U, 60000U));
	bool overdue = false;
	unsigned int i;

	spin_lock_bh(&dev->lock);
	if (dev->flying) {
		overdue = time_after(jiffies, dev->progress + timeout);
		for (i = 0; i < dev->depth && !overdue; i++)
			overdue = dev->slots[i].phase == CL_SLOT_FLYING &&
				  time_after(jiffies, dev->slots[i].since + CL_PATIENCE * timeout);
	}
	spin_unlock_bh(&dev->lock);
	return overdue;
}

void cl_watch(struct work_struct *work)
{
	struct cl_device *dev = container_of(to_delayed_work(work), struct cl_device, watch);
	u32 seen = READ_ONCE(dev->seen);
	bool waiting;

	if (READ_ONCE(dev->stopping))
		return;
	if (dev->state == CL_DOWN) {
		unsigned long retry = READ_ONCE(dev->retry);

		if (time_before(jiffies, retry)) {
			queue_delayed_work(dev->workqueue, &dev->watch, retry - jiffies + 1);
			return;
		}
		cl_recover(dev, true);
	} else if (READ_ONCE(dev->broken)) {
		cl_recover(dev, true);
	} else if (cl_is_overdue(dev)) {
		cl_count(CL_STAT_TIMEOUTS);
		cl_recover(dev, true);
	} else {
		/* The same completion waits since the last tick: its interrupt is lost. */
		waiting = dev->ops->waits(dev);
		if (waiting && dev->ticks_waiting && dev->ticks_seen == seen)
			dev->kicked = true;
		if (dev->kicked || crypto_queue_len(&dev->queue))
			tasklet_schedule(&dev->tasklet);
		dev->ticks_waiting = waiting;
		dev->ticks_seen = seen;
	}
	if (dev->state != CL_UP || dev->flying || dev->next || crypto_queue_len(&dev->queue)) {
		cl_watch_soon(dev);
	} else if (dev->heartbeat_ms) {
		if (time_after_eq(jiffies, dev->progress + msecs_to_jiffies(dev->heartbeat_ms)))
			cl_probe(dev);
		/* First, so that a request that comes now has the watch sooner. */
		WRITE_ONCE(dev->resting, !READ_ONCE(dev->flying));
		queue_delayed_work(dev->workqueue, &dev->watch,
				   msecs_to_jiffies(dev->heartbeat_ms));
	}
}

/* The first reset. */
int cl_start(struct cl_device *dev)
{
	cl_recover(dev, true);
	if (dev->state != CL_UP)
		return -EIO;
	if (dev->heartbeat_ms)
		cl_watch_soon(dev);
	return 0;
}

/* Nobody gives requests any more: waits for those under way, then takes them back. */
void cl_stop(struct cl_device *dev)
{
	wait_event_timeout(dev->idle,
			   !READ_ONCE(dev->flying) && !crypto_queue_len(&dev->queue) &&
			   !READ_ONCE(dev->next), msecs_to_jiffies(2 * cl_timeout_ms) + HZ);
	WRITE_ONCE(dev->stopping, true);
	cancel_delayed_work_sync(&dev->watch);
	cl_recover(dev, false);
	/* Those that were still on their way to it have found it down. */
	cancel_delayed_work_sync(&dev->watch);
	cl_pump(dev);
}

/*
 * Before the machine sleeps: new requests are software's, those under way are waited for, and what
 * is not answered by then is software's too.
 */
void cl_sleep(struct cl_device *dev)
{
	spin_lock_bh(&dev->lock);
	dev->closed = true;
	spin_unlock_bh(&dev->lock);
	cl_stop(dev);
}

/* After it has slept. One that does not answer now is tried again later. */
void cl_wake(struct cl_device *dev)
{
	WRITE_ONCE(dev->stopping, false);
	cl_recover(dev, true);
	spin_lock_bh(&dev->lock);
	dev->closed = false;
	spin_unlock_bh(&dev->lock);
	cl_watch_soon(dev);
}

/* From now on it serves; its algorithms are tested and registered. */
int cl_activate(struct cl_device *dev)
{
	int ret = -EBUSY;

	mutex_lock(&cl_mutex);
	if (rcu_access_pointer(cl_active)) {
		dev_err(dev->parent, "there is another device, and one is served\n");
	} else {
		rcu_assign_pointer(cl_active, dev);
		ret = cl_register_algs(dev);
		if (ret)
			rcu_assign_pointer(cl_active, NULL);
	}
	mutex_unlock(&cl_mutex);
	if (ret)
		synchronize_rcu();
	return ret;
}

/* From here on nobody gives it anything. */
void cl_deactivate(struct cl_device *dev)
{
	mutex_lock(&cl_mutex);
	if (rcu_access_pointer(cl_active) == dev)
		rcu_assign_pointer(cl_active, NULL);
	mutex_unlock(&cl_mutex);
	synchronize_rcu();
}

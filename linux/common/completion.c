// SPDX-License-Identifier: GPL-2.0
/*
 * Completions: from the device to the CryptoAPI.
 *
 * The tasklet alone takes them. A reset takes its place and disables it.
 */
#include "cipherlane.h"

/* Looks at a ring with nothing in it, under load, before interrupts are switched on again. */
#define CL_POLLS	8

/* Under the lock: the device has ended a slot. */
void cl_ended(struct cl_device *dev, struct cl_slot *slot, enum cl_result result,
	      struct list_head *ended)
{
	slot->phase = CL_SLOT_ENDED;
	slot->result = result;
	if (slot->req)
		dev->session_users[slot->session]--;
	list_add_tail(&slot->list, ended);
	dev->flying--;
	dev->progress = jiffies;
}

/* By the handler of the interrupt, which has switched interrupts off. */
void cl_interrupted(struct cl_device *dev)
{
	cl_count(CL_STAT_INTERRUPTS);
	dev->interrupted = true;
	tasklet_schedule(&dev->tasklet);
}

static void cl_end_key(struct cl_device *dev, struct cl_slot *slot)
{
	spin_lock_bh(&dev->lock);
	if (slot->epoch == dev->epoch) {
		if (slot->operation == CL_WIPE_KEY)
			__clear_bit(slot->session, dev->used_sessions);
		else if (slot->operation == CL_LOAD_KEY && slot->result != CL_DONE)
			__set_bit(slot->session, dev->bad_sessions);
	}
	spin_unlock_bh(&dev->lock);
	dev->ops->wipe_copy(dev, slot);
}

void cl_end(struct cl_device *dev, struct list_head *ended)
{
	struct cl_slot *slot, *next;

	list_for_each_entry_safe(slot, next, ended, list) {
		struct cl_req *req = slot->req;

		list_del(&slot->list);
		if (!req) {
			cl_end_key(dev, slot);
			cl_release(dev, slot);
			continue;
		}
		dev->ops->unfill(dev, slot);
		if (slot->result == CL_DONE || slot->result == CL_BAD_TAG) {
			if (req->audited) {
				cl_audit_later(dev, slot);
				continue;
			}
			cl_finish(slot);
		} else {
			/* It had the key, and does not: it has begun anew without a word. */
			if (slot->result == CL_NO_SESSION && slot->epoch == dev->epoch &&
			    !test_bit(slot->session, dev->bad_sessions))
				WRITE_ONCE(dev->broken, true);
			atomic_dec(&req->ctx->flying);
			cl_drop_audit(dev, req);
			cl_finish_in_software(req, CL_STAT_SOFTWARE_FAILED);
		}
		cl_release(dev, slot);
	}
}

/*
 * Nothing comes from a device that is down or has written nonsense before it is reset, and what it
 * left in its ring would look like news for ever.
 */
static bool cl_is_sound(const struct cl_device *dev)
{
	return READ_ONCE(dev->state) == CL_UP && !READ_ONCE(dev->broken);
}

static void cl_tasklet(struct tasklet_struct *tasklet)
{
	struct cl_device *dev = from_tasklet(dev, tasklet, tasklet);
	LIST_HEAD(ended);
	bool is_sound;
	u32 found;

	found = dev->ops->collect(dev, &ended);
	dev->seen += found;
	if (!found && dev->interrupted)
		cl_count(CL_STAT_SPURIOUS_INTERRUPTS);
	if (found && dev->kicked && !dev->interrupted)
		cl_count(CL_STAT_LOST_INTERRUPTS);
	dev->interrupted = false;
	dev->kicked = false;
	cl_hold(dev);
	cl_end(dev, &ended);
	cl_pump(dev);
	cl_let_go(dev);
	/* One that is down is tried again when its pause has passed. */
	if (READ_ONCE(dev->broken) && READ_ONCE(dev->state) == CL_UP)
		mod_delayed_work(dev->workqueue, &dev->watch, 0);

	/* Under load the next ones are there soon, and an interrupt costs more than a look. */
	is_sound = cl_is_sound(dev);
	dev->idle_polls = found ? 0 : dev->idle_polls + 1;
	if (is_sound && READ_ONCE(dev->flying) > 1 && dev->idle_polls < CL_POLLS) {
		cl_count(CL_STAT_POLLS);
		tasklet_schedule(&dev->tasklet);
		return;
	}
	dev->idle_polls = 0;
	if (is_sound && !dev->ops->listen(dev))
		tasklet_schedule(&dev->tasklet);
	if (!READ_ONCE(dev->flying))
		wake_up(&dev->idle);
}

// SPDX-License-Identifier: GPL-2.0
/* Slots, and the queue before them: from the CryptoAPI to the device. */
#include <linux/bitmap.h>

#include "cipherlane.h"

/* Milliseconds between looks at the time. */
#define CL_TICK		10

/* The device that serves; NULL if there is none. */
struct cl_device __rcu *cl_active;

void cl_watch_soon(struct cl_device *dev)
{
	/* It may be set for the next heartbeat, which is later. */
	if (READ_ONCE(dev->resting)) {
		WRITE_ONCE(dev->resting, false);
		mod_delayed_work(dev->workqueue, &dev->watch, msecs_to_jiffies(CL_TICK));
	} else {
		queue_delayed_work(dev->workqueue, &dev->watch, msecs_to_jiffies(CL_TICK));
	}
}

static struct cl_slot *cl_take_slot(struct cl_device *dev, enum cl_operation operation,
				    u32 session)
{
	struct cl_slot *slot = list_first_entry(&dev->free, struct cl_slot, list);

	list_del(&slot->list);
	dev->free_count--;
	slot->phase = CL_SLOT_FILLING;
	slot->turn++;
	slot->epoch = dev->epoch;
	slot->operation = operation;
	slot->session = session;
	slot->req = NULL;
	slot->bounced = 0;
	slot->plain = 0;
	slot->units = 0;
	return slot;
}

static void cl_fly(struct cl_device *dev, struct cl_slot *slot)
{
	slot->phase = CL_SLOT_FLYING;
	slot->since = jiffies;
	dev->given = true;
	if (!dev->flying++) {
		dev->progress = jiffies;
		cl_watch_soon(dev);
	}
}

/* Under the lock: a slot that was taken and is not needed. */
static void cl_put_slot(struct cl_device *dev, struct cl_slot *slot)
{
	slot->phase = CL_SLOT_FREE;
	slot->req = NULL;
	list_add(&slot->list, &dev->free);
	dev->free_count++;
}

void cl_release(struct cl_device *dev, struct cl_slot *slot)
{
	if (slot->plain)
		memzero_explicit(slot->bounce, slot->plain);
	spin_lock_bh(&dev->lock);
	cl_put_slot(dev, slot);
	spin_unlock_bh(&dev->lock);
}

/* Units for which there is room. */
static u32 cl_room(struct cl_device *dev)
{
	u32 room = dev->ops->room(dev);

	return room - min(room, dev->reserved);
}

/* Units for a key: more than any transport needs. */
#define CL_KEY_UNITS	4

/* Tells the device, unless whoever holds it back will do that for all that is given meanwhile. */
static void cl_announce(struct cl_device *dev, bool now)
{
	if (!READ_ONCE(dev->held))
		dev->ops->announce(dev, now);
}

/* By the tasklet, around the completions whose users will give the next requests. */
void cl_hold(struct cl_device *dev)
{
	spin_lock_bh(&dev->lock);
	dev->held = true;
	dev->given = false;
	spin_unlock_bh(&dev->lock);
}

void cl_let_go(struct cl_device *dev)
{
	bool given;

	/* Who gives does so under the lock, and looks whether it is held afterwards. */
	spin_lock_bh(&dev->lock);
	WRITE_ONCE(dev->held, false);
	given = dev->given;
	spin_unlock_bh(&dev->lock);
	if (given)
		dev->ops->announce(dev, true);
}

static int cl_give_key(struct cl_device *dev, enum cl_operation operation, u32 session,
		       struct cl_ctx *ctx)
{
	struct cl_slot *slot = cl_take_slot(dev, operation, session);
	int ret = dev->ops->give_key(dev, slot, ctx);

	if (ret)
		cl_put_slot(dev, slot);
	else
		cl_fly(dev, slot);
	return ret;
}

/* Has the device wipe keys that nobody uses any more. */
static bool cl_wipe_stale(struct cl_device *dev)
{
	bool any = false;
	u32 session = 0;

	while (dev->state == CL_UP && dev->free_count && cl_room(dev) >= CL_KEY_UNITS) {
		session = find_next_bit(dev->stale_sessions, dev->sessions, session);
		if (session == dev->sessions)
			break;
		/* Not before what needs it: requests can be behind this, and in other queues. */
		if (!dev->session_users[session]) {
			if (cl_give_key(dev, CL_WIPE_KEY, session, NULL))
				break;
			__clear_bit(session, dev->stale_sessions);
			any = true;
		}
		session++;
	}
	return any;
}

/* Asks whether an idle device is there; the watch looks for the answer. */
void cl_probe(struct cl_device *dev)
{
	bool rings;

	spin_lock_bh(&dev->lock);
	rings = dev->state == CL_UP && !dev->flying && dev->free_count &&
		cl_room(dev) >= CL_KEY_UNITS &&
		!cl_give_key(dev, CL_PROBE, dev->sessions, NULL);
	spin_unlock_bh(&dev->lock);
	if (rings)
		dev->ops->announce(dev, true);
}

/*
 * A slot for a request, behind its key if the device does not have that. -EAGAIN: no room
 * now; -ENOKEY: no room for the key.
 */
static struct cl_slot *cl_reserve(struct cl_device *dev, struct cl_req *req,
				  const struct cl_plan *plan)
{
	struct cl_ctx *ctx = req->ctx;
	bool wants_key = ctx->epoch != dev->epoch;
	struct cl_slot *slot;
	u32 session;
	int ret;

	if (dev->free_count < 1 + wants_key ||
	    cl_room(dev) < plan->units + (wants_key ? CL_KEY_UNITS : 0))
		return ERR_PTR(-EAGAIN);
	if (wants_key) {
		session = find_first_zero_bit(dev->used_sessions, dev->sessions);
		if (session == dev->sessions)
			return ERR_PTR(-ENOKEY);
		ret = cl_give_key(dev, CL_LOAD_KEY, session, ctx);
		if (ret)
			return ERR_PTR(ret == -EAGAIN ? ret : -ENOKEY);
		__set_bit(session, dev->used_sessions);
		__clear_bit(session, dev->bad_sessions);
		ctx->session = session;
		ctx->epoch = dev->epoch;
		cl_count(CL_STAT_KEYS);
	} else if (test_bit(ctx->session, dev->bad_sessions)) {
		return ERR_PTR(-ENOKEY);
	}
	slot = cl_take_slot(dev, req->encrypt ? CL_ENCRYPT : CL_DECRYPT, ctx->session);
	slot->req = req;
	slot->units = plan->units;
	dev->reserved += plan->units;
	dev->session_users[slot->session]++;
	return slot;
}

/* Maps, copies and gives a request. False: it is not with the device. */
static bool cl_launch(struct cl_device *dev, struct cl_slot *slot, const struct cl_plan *plan)
{
	struct cl_ctx *ctx = slot->req->ctx;
	bool filled, given;

	slot->out_bounced = !plan->out_direct;
	slot->bounced = plan->in_direct && plan->out_direct ? 0 :
			max(slot->req->skip + slot->req->in_len, slot->req->out_len);
	/* Of a request that is encrypted from where it lies there is ciphertext only. */
	slot->plain = plan->in_direct && slot->req->encrypt ? 0 : slot->bounced;
	filled = !dev->ops->fill(dev, slot, plan);
	if (filled)
		cl_count(slot->bounced ? CL_STAT_BOUNCED : CL_STAT_ZERO_COPY);
	spin_lock_bh(&dev->lock);
	dev->reserved -= plan->units;
	/* It may have been reset meanwhile. */
	given = filled && dev->state == CL_UP && slot->epoch == dev->epoch &&
		!dev->ops->give(dev, slot);
	if (given) {
		atomic_inc(&ctx->flying);
		cl_fly(dev, slot);
	} else if (slot->epoch == dev->epoch) {
		dev->session_users[slot->session]--;
	}
	spin_unlock_bh(&dev->lock);
	if (!given) {
		if (filled)
			dev->ops->unfill(dev, slot);
		cl_release(dev, slot);
	}
	return given;
}

/*
 * Gives a request to the device, or has it wait for room. Returns what the CryptoAPI
 * returns, -EINPROGRESS or -EBUSY; or -EAGAIN and the like: software shall do it.
 */
int cl_submit(struct cl_device *dev, struct cl_req *req)
{
	struct cl_slot *slot;
	struct cl_plan plan;
	int ret;

	if (!dev->ops->plan(dev, req, &plan)) {
		cl_count(CL_STAT_SOFTWARE_SHAPE);
		return -EINVAL;
	}
	spin_lock_bh(&dev->lock);
	if (dev->state != CL_UP || dev->closed) {
		spin_unlock_bh(&dev->lock);
		cl_count(CL_STAT_SOFTWARE_DOWN);
		return -EIO;
	}
	req->ahead = dev->flying + crypto_queue_len(&dev->queue);
	slot = dev->next || crypto_queue_len(&dev->queue) ? ERR_PTR(-EAGAIN) :
							    cl_reserve(dev, req, &plan);
	if (PTR_ERR_OR_ZERO(slot) == -EAGAIN) {
		/* Back-pressure: a caller that can wait is told so, another one helps itself. */
		ret = crypto_enqueue_request(&dev->queue, req->base);
		if (ret != -ENOSPC)
			cl_watch_soon(dev);
		spin_unlock_bh(&dev->lock);
		cl_count(ret == -ENOSPC ? CL_STAT_SOFTWARE_FULL :
			 ret == -EBUSY ? CL_STAT_BACKLOGGED : CL_STAT_QUEUED);
		return ret;
	}
	spin_unlock_bh(&dev->lock);
	if (IS_ERR(slot)) {
		cl_count(CL_STAT_SOFTWARE_KEY);
		return PTR_ERR(slot);
	}
	if (!cl_launch(dev, slot, &plan)) {
		cl_count(CL_STAT_SOFTWARE_DOWN);
		return -EIO;
	}
	cl_announce(dev, false);
	return -EINPROGRESS;
}

/* Gives requests that wait to the device, as far as there is room: one doorbell for all. */
void cl_pump(struct cl_device *dev)
{
	bool rings = false;

	for (;;) {
		struct crypto_async_request *backlog = NULL;
		struct crypto_async_request *base;
		struct cl_slot *slot;
		struct cl_plan plan;
		struct cl_req *req;
		enum cl_stat why;
		bool done = false;

		spin_lock_bh(&dev->lock);
		rings |= cl_wipe_stale(dev);
		base = dev->next;
		dev->next = NULL;
		if (!base) {
			backlog = crypto_get_backlog(&dev->queue);
			base = crypto_dequeue_request(&dev->queue);
		}
		if (!base) {
			spin_unlock_bh(&dev->lock);
			break;
		}
		req = cl_req_of(base);
		if (dev->state != CL_UP) {
			slot = ERR_PTR(-EIO);
			why = CL_STAT_SOFTWARE_DOWN;
		} else if (!dev->ops->plan(dev, req, &plan)) {
			slot = ERR_PTR(-EINVAL);
			why = CL_STAT_SOFTWARE_SHAPE;
		} else {
			slot = cl_reserve(dev, req, &plan);
			why = CL_STAT_SOFTWARE_KEY;
		}
		if (PTR_ERR_OR_ZERO(slot) == -EAGAIN) {
			dev->next = base;
			done = true;
		}
		spin_unlock_bh(&dev->lock);
		/* It has left the queue of those that wait outside. */
		if (backlog) {
			local_bh_disable();
			crypto_request_complete(backlog, -EINPROGRESS);
			local_bh_enable();
		}
		if (done)
			break;
		if (!IS_ERR(slot)) {
			if (cl_launch(dev, slot, &plan)) {
				rings = true;
				continue;
			}
			why = CL_STAT_SOFTWARE_DOWN;
		}
		cl_drop_audit(dev, req);
		cl_finish_in_software(req, why);
	}
	if (rings)
		cl_announce(dev, true);
}

/* A user's key is not used any more: the device shall wipe it. */
void cl_forget_session(struct cl_ctx *ctx)
{
	struct cl_device *dev;
	bool rings = false;

	rcu_read_lock();
	dev = rcu_dereference(cl_active);
	if (dev && ctx->epoch) {
		spin_lock_bh(&dev->lock);
		if (ctx->epoch == dev->epoch) {
			__set_bit(ctx->session, dev->stale_sessions);
			rings = cl_wipe_stale(dev);
		}
		spin_unlock_bh(&dev->lock);
		if (rings)
			cl_announce(dev, true);
	}
	rcu_read_unlock();
	ctx->epoch = 0;
}

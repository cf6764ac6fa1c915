// SPDX-License-Identifier: GPL-2.0
/*
 * The two rings, interrupts, timeouts, resets.
 *
 * Whatever the device writes is checked: completions name a slot and its turn, so that
 * one that is reported twice, late, or for a request never made is told from a good one; an
 * index that cannot be is answered by a reset.
 *
 * Completions are taken by the tasklet alone. A reset takes its place and disables it.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/io-64-nonatomic-lo-hi.h>

#include "engine.h"

/* Requests that wait for room, beside those of users that can wait themselves. */
#define CLE_QUEUE	256
/* Looks at a ring with nothing in it, under load, before interrupts are switched on again. */
#define CLE_POLLS	8
/* Milliseconds between looks at the time. */
#define CLE_TICK	10
/* A request that is this number of timeouts old is lost, even if others come back. */
#define CLE_PATIENCE	4
/* Resets in a row for a device that may be slow to hear. */
#define CLE_RESETS	3
#define CLE_FIRST_PAUSE	1000U
#define CLE_LAST_PAUSE	60000U

static void cle_pump(struct cle_device *dev);

static u32 cle_get(struct cle_device *dev, u32 offset)
{
	return readl(dev->bar + offset);
}

static void cle_set(struct cle_device *dev, u32 offset, u32 value)
{
	/* A barrier stands before the write: the device sees what was written before. */
	writel(value, dev->bar + offset);
}

static void cle_ring_doorbell(struct cle_device *dev)
{
	writel(CLE_DOORBELL_DEVICE, dev->doorbell);
}

static void cle_watch_soon(struct cle_device *dev)
{
	queue_delayed_work(dev->workqueue, &dev->watch, msecs_to_jiffies(CLE_TICK));
}

/* --- From the CryptoAPI to the device ------------------------------------------------- */

static struct cle_slot *cle_take_slot(struct cle_device *dev, enum cle_opcode opcode, u32 session)
{
	struct cle_slot *slot = list_first_entry(&dev->free, struct cle_slot, list);

	list_del(&slot->list);
	dev->free_count--;
	slot->phase = CLE_SLOT_FILLING;
	slot->turn++;
	slot->epoch = dev->epoch;
	slot->opcode = opcode;
	slot->session = session;
	slot->req = NULL;
	slot->bounced = 0;
	slot->src_nents = 0;
	slot->dst_nents = 0;
	return slot;
}

static void cle_fly(struct cle_device *dev, struct cle_slot *slot)
{
	slot->phase = CLE_SLOT_FLYING;
	slot->since = jiffies;
	if (!dev->flying++) {
		dev->progress = jiffies;
		cle_watch_soon(dev);
	}
	cle_set(dev, CLE_REG_SUBMIT_TAIL, dev->tail);
}

/* Descriptors for which there is room. */
static u32 cle_room(struct cle_device *dev)
{
	u32 used = dev->tail - cle_get(dev, CLE_REG_SUBMIT_HEAD);

	if (used > dev->ring) {
		dev->broken = true;
		return 0;
	}
	return dev->ring - min(dev->ring, used + dev->reserved);
}

/* Has the device wipe keys that nobody uses any more. */
static bool cle_wipe_stale(struct cle_device *dev)
{
	bool any = false;
	u32 session;

	while (dev->state == CLE_UP && dev->free_count && cle_room(dev)) {
		struct cle_slot *slot;

		session = find_first_bit(dev->stale_sessions, dev->sessions);
		if (session == dev->sessions)
			break;
		__clear_bit(session, dev->stale_sessions);
		slot = cle_take_slot(dev, CLE_OP_WIPE_KEY, session);
		cle_write_key(dev, slot, NULL);
		cle_fly(dev, slot);
		any = true;
	}
	return any;
}

/*
 * A slot for a request, behind its key if the device does not have that. -EAGAIN: no room
 * now; -ENOKEY: no room for the key.
 */
static struct cle_slot *cle_reserve(struct cle_device *dev, struct skcipher_request *req,
				    const struct cle_plan *plan)
{
	struct cle_ctx *ctx = crypto_skcipher_ctx(crypto_skcipher_reqtfm(req));
	struct cle_req *state = skcipher_request_ctx(req);
	bool wants_key = ctx->epoch != dev->epoch;
	struct cle_slot *slot;
	u32 session;

	if (dev->free_count < 1 + wants_key ||
	    cle_room(dev) < plan->descriptors + wants_key)
		return ERR_PTR(-EAGAIN);
	if (wants_key) {
		session = find_first_zero_bit(dev->used_sessions, dev->sessions);
		if (session == dev->sessions)
			return ERR_PTR(-ENOKEY);
		__set_bit(session, dev->used_sessions);
		__clear_bit(session, dev->bad_sessions);
		ctx->session = session;
		ctx->epoch = dev->epoch;
		slot = cle_take_slot(dev, CLE_OP_LOAD_KEY, session);
		cle_write_key(dev, slot, ctx);
		cle_fly(dev, slot);
		cle_count(CLE_STAT_KEYS);
	} else if (test_bit(ctx->session, dev->bad_sessions)) {
		return ERR_PTR(-ENOKEY);
	}
	slot = cle_take_slot(dev, state->encrypt ? CLE_OP_ENCRYPT : CLE_OP_DECRYPT, ctx->session);
	slot->req = req;
	slot->descriptors = plan->descriptors;
	dev->reserved += plan->descriptors;
	return slot;
}

static void cle_release(struct cle_device *dev, struct cle_slot *slot)
{
	if (slot->bounced)
		memzero_explicit(slot->bounce, slot->bounced);
	spin_lock_bh(&dev->lock);
	slot->phase = CLE_SLOT_FREE;
	slot->req = NULL;
	list_add(&slot->list, &dev->free);
	dev->free_count++;
	spin_unlock_bh(&dev->lock);
}

/* Maps, copies and announces a request. False: it is not with the device. */
static bool cle_launch(struct cle_device *dev, struct cle_slot *slot, const struct cle_plan *plan)
{
	struct skcipher_request *req = slot->req;
	struct cle_ctx *ctx = crypto_skcipher_ctx(crypto_skcipher_reqtfm(req));
	bool filled = !cle_fill(dev, slot, plan);
	bool given;

	spin_lock_bh(&dev->lock);
	dev->reserved -= plan->descriptors;
	/* It may have been reset meanwhile. */
	given = filled && dev->state == CLE_UP && slot->epoch == dev->epoch;
	if (given) {
		atomic_inc(&ctx->flying);
		cle_write_chain(dev, slot);
		cle_fly(dev, slot);
	}
	spin_unlock_bh(&dev->lock);
	if (!given) {
		if (filled)
			cle_unmap(dev, slot);
		cle_release(dev, slot);
		return false;
	}
	return true;
}

/*
 * Gives a request to the device, or has it wait for room. Returns what the CryptoAPI
 * returns, -EINPROGRESS or -EBUSY; or -EAGAIN and the like: software shall do it.
 */
int cle_submit(struct cle_device *dev, struct skcipher_request *req)
{
	struct cle_req *state = skcipher_request_ctx(req);
	struct cle_slot *slot;
	struct cle_plan plan;
	int ret;

	if (!cle_plan_request(dev, req, &plan)) {
		cle_count(CLE_STAT_SOFTWARE_SHAPE);
		return -EINVAL;
	}
	spin_lock_bh(&dev->lock);
	if (dev->state != CLE_UP) {
		spin_unlock_bh(&dev->lock);
		cle_count(CLE_STAT_SOFTWARE_DOWN);
		return -EIO;
	}
	state->ahead = dev->flying + crypto_queue_len(&dev->queue);
	slot = dev->next || crypto_queue_len(&dev->queue) ? ERR_PTR(-EAGAIN) :
							    cle_reserve(dev, req, &plan);
	if (PTR_ERR_OR_ZERO(slot) == -EAGAIN) {
		/* Back-pressure: a caller that can wait is told so, another one helps itself. */
		ret = crypto_enqueue_request(&dev->queue, &req->base);
		if (ret != -ENOSPC)
			cle_watch_soon(dev);
		spin_unlock_bh(&dev->lock);
		cle_count(ret == -ENOSPC ? CLE_STAT_SOFTWARE_FULL :
			  ret == -EBUSY ? CLE_STAT_BACKLOGGED : CLE_STAT_QUEUED);
		return ret;
	}
	spin_unlock_bh(&dev->lock);
	if (IS_ERR(slot)) {
		cle_count(CLE_STAT_SOFTWARE_KEY);
		return PTR_ERR(slot);
	}
	if (!cle_launch(dev, slot, &plan)) {
		cle_count(CLE_STAT_SOFTWARE_DOWN);
		return -EIO;
	}
	cle_ring_doorbell(dev);
	return -EINPROGRESS;
}

/* Gives requests that wait to the device, as far as there is room. */
static void cle_pump(struct cle_device *dev)
{
	bool rings = false;

	for (;;) {
		struct crypto_async_request *backlog = NULL;
		struct skcipher_request *req;
		struct cle_slot *slot;
		struct cle_plan plan;
		enum cle_stat why;
		bool done = false;

		spin_lock_bh(&dev->lock);
		rings |= cle_wipe_stale(dev);
		req = dev->next;
		dev->next = NULL;
		if (!req) {
			struct crypto_async_request *base;

			backlog = crypto_get_backlog(&dev->queue);
			base = crypto_dequeue_request(&dev->queue);
			req = base ? skcipher_request_cast(base) : NULL;
		}
		if (!req) {
			spin_unlock_bh(&dev->lock);
			break;
		}
		if (dev->state != CLE_UP) {
			slot = ERR_PTR(-EIO);
			why = CLE_STAT_SOFTWARE_DOWN;
		} else if (!cle_plan_request(dev, req, &plan)) {
			slot = ERR_PTR(-EINVAL);
			why = CLE_STAT_SOFTWARE_SHAPE;
		} else {
			slot = cle_reserve(dev, req, &plan);
			why = CLE_STAT_SOFTWARE_KEY;
		}
		if (PTR_ERR_OR_ZERO(slot) == -EAGAIN) {
			dev->next = req;
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
		if (IS_ERR(slot))
			cle_finish_in_software(req, why);
		else if (cle_launch(dev, slot, &plan))
			rings = true;
		else
			cle_finish_in_software(req, CLE_STAT_SOFTWARE_DOWN);
	}
	if (rings)
		cle_ring_doorbell(dev);
}

/* A user's key is not used any more: the device shall wipe it. */
void cle_forget_session(struct cle_ctx *ctx)
{
	struct cle_device *dev;
	bool rings = false;

	rcu_read_lock();
	dev = rcu_dereference(cle_active);
	if (dev && ctx->epoch) {
		spin_lock_bh(&dev->lock);
		if (ctx->epoch == dev->epoch) {
			__set_bit(ctx->session, dev->stale_sessions);
			rings = cle_wipe_stale(dev);
		}
		spin_unlock_bh(&dev->lock);
		if (rings)
			cle_ring_doorbell(dev);
	}
	rcu_read_unlock();
	ctx->epoch = 0;
}

/* --- From the device to the CryptoAPI ------------------------------------------------- */

/* Takes completions from the ring. Returns how many there were. */
static u32 cle_collect(struct cle_device *dev, struct list_head *ended)
{
	u32 tail = cle_get(dev, CLE_REG_COMPLETE_TAIL);
	u32 status = cle_get(dev, CLE_REG_STATUS);
	u32 count = tail - dev->head;
	u32 i;

	if (count > dev->ring || status != CLE_STATUS_READY)
		WRITE_ONCE(dev->broken, true);
	if (!count || count > dev->ring)
		return 0;
	spin_lock_bh(&dev->lock);
	for (i = 0; i < count; i++) {
		u32 index = (dev->head + i) & (dev->ring - 1);
		u32 offset = CLE_REGISTERS + (dev->ring + index) * CLE_ENTRY;
		struct cle_completion completion;
		struct cle_slot *slot = NULL;
		u16 id;

		memcpy_fromio(&completion, dev->bar + offset, sizeof(completion));
		id = le16_to_cpu(completion.slot);
		if (id < dev->depth)
			slot = &dev->slots[id];
		if (!slot || slot->phase != CLE_SLOT_FLYING ||
		    slot->turn != le16_to_cpu(completion.turn)) {
			cle_count(CLE_STAT_SPURIOUS_COMPLETIONS);
			continue;
		}
		slot->phase = CLE_SLOT_ENDED;
		slot->status = le32_to_cpu(completion.status);
		/* All of it or nothing. */
		if (slot->req && slot->status == CLE_DONE &&
		    le64_to_cpu(completion.written) != slot->req->cryptlen)
			slot->status = ~0U;
		list_add_tail(&slot->list, ended);
		dev->flying--;
		dev->progress = jiffies;
	}
	spin_unlock_bh(&dev->lock);
	dev->head = tail;
	cle_set(dev, CLE_REG_COMPLETE_HEAD, tail);
	return count;
}

/* The key that stands behind the operation. */
static void cle_wipe_key(struct cle_device *dev, struct cle_slot *slot)
{
	u32 offset = CLE_REGISTERS + 2 * dev->ring * CLE_ENTRY + slot->id * CLE_SLOT;

	if (slot->opcode == CLE_OP_LOAD_KEY)
		memset_io(dev->bar + offset + CLE_OPERATION, 0, 2 * AES_MAX_KEY_SIZE);
}

static void cle_end_key(struct cle_device *dev, struct cle_slot *slot)
{
	spin_lock_bh(&dev->lock);
	if (slot->epoch == dev->epoch) {
		if (slot->opcode == CLE_OP_WIPE_KEY)
			__clear_bit(slot->session, dev->used_sessions);
		else if (slot->status != CLE_DONE)
			__set_bit(slot->session, dev->bad_sessions);
	}
	spin_unlock_bh(&dev->lock);
	cle_wipe_key(dev, slot);
}

static void cle_end(struct cle_device *dev, struct list_head *ended)
{
	struct cle_slot *slot, *next;

	list_for_each_entry_safe(slot, next, ended, list) {
		struct skcipher_request *req = slot->req;

		list_del(&slot->list);
		if (!req) {
			cle_end_key(dev, slot);
		} else {
			cle_unmap(dev, slot);
			if (slot->status == CLE_DONE) {
				cle_finish(dev, slot);
			} else {
				struct cle_ctx *ctx =
					crypto_skcipher_ctx(crypto_skcipher_reqtfm(req));

				atomic_dec(&ctx->flying);
				cle_finish_in_software(req, CLE_STAT_SOFTWARE_FAILED);
			}
		}
		cle_release(dev, slot);
	}
}

static void cle_tasklet(struct tasklet_struct *tasklet)
{
	struct cle_device *dev = from_tasklet(dev, tasklet, tasklet);
	LIST_HEAD(ended);
	u32 found;

	found = cle_collect(dev, &ended);
	if (!found && dev->interrupted)
		cle_count(CLE_STAT_SPURIOUS_INTERRUPTS);
	if (found && dev->kicked && !dev->interrupted)
		cle_count(CLE_STAT_LOST_INTERRUPTS);
	dev->interrupted = false;
	dev->kicked = false;
	cle_end(dev, &ended);
	cle_pump(dev);
	if (READ_ONCE(dev->broken))
		mod_delayed_work(dev->workqueue, &dev->watch, 0);

	/* Under load the next ones are there soon, and an interrupt costs more than a look. */
	dev->idle_polls = found ? 0 : dev->idle_polls + 1;
	if (READ_ONCE(dev->flying) > 1 && dev->idle_polls < CLE_POLLS) {
		cle_count(CLE_STAT_POLLS);
		tasklet_schedule(&dev->tasklet);
		return;
	}
	dev->idle_polls = 0;
	cle_set(dev, CLE_REG_INTERRUPTS, 1);
	/* Against the device's: it reports, then looks whether an interrupt is wanted. */
	mb();
	if (cle_get(dev, CLE_REG_COMPLETE_TAIL) != dev->head)
		tasklet_schedule(&dev->tasklet);
	if (!READ_ONCE(dev->flying))
		wake_up(&dev->idle);
}

irqreturn_t cle_interrupt(int irq, void *data)
{
	struct cle_device *dev = data;

	cle_count(CLE_STAT_INTERRUPTS);
	cle_set(dev, CLE_REG_INTERRUPTS, 0);
	dev->interrupted = true;
	tasklet_schedule(&dev->tasklet);
	return IRQ_HANDLED;
}

/* --- When the device does not answer -------------------------------------------------- */

/* Asks for a reset; whether it was answered. From then on the device touches no memory. */
static bool cle_ask_reset(struct cle_device *dev)
{
	unsigned long limit = jiffies + msecs_to_jiffies(cle_reset_ms) + 1;

	cle_count(CLE_STAT_RESETS);
	cle_set(dev, CLE_REG_INTERRUPTS, 0);
	/* It begins with empty rings, and may look at them as soon as it is reset. */
	cle_set(dev, CLE_REG_SUBMIT_TAIL, 0);
	cle_set(dev, CLE_REG_COMPLETE_HEAD, 0);
	cle_set(dev, CLE_REG_RESET, ++dev->reset);
	cle_ring_doorbell(dev);
	for (;;) {
		bool late = time_after(jiffies, limit);

		if (cle_get(dev, CLE_REG_RESET_DONE) == dev->reset)
			return true;
		if (late)
			break;
		usleep_range(100, 200);
	}
	cle_count(CLE_STAT_UNANSWERED_RESETS);
	return false;
}

/*
 * Takes everything back from the device, and makes it work again if @again and if it
 * answers. Its requests are done by software: their input is intact.
 */
static void cle_recover(struct cle_device *dev, bool again)
{
	LIST_HEAD(ended);
	LIST_HEAD(aborted);
	struct cle_slot *slot, *next;
	bool answered = false;
	unsigned int i;

	spin_lock_bh(&dev->lock);
	dev->state = CLE_RESETTING;
	spin_unlock_bh(&dev->lock);
	tasklet_disable(&dev->tasklet);
	/* What it has reported is reported. */
	cle_collect(dev, &ended);
	for (i = 0; i < CLE_RESETS && !answered; i++)
		answered = cle_ask_reset(dev);
	if (!answered)
		pci_clear_master(dev->pdev);

	spin_lock_bh(&dev->lock);
	dev->tail = 0;
	dev->head = 0;
	dev->epoch++;
	dev->epoch += !dev->epoch;
	WRITE_ONCE(dev->broken, false);
	bitmap_zero(dev->used_sessions, dev->sessions);
	bitmap_zero(dev->stale_sessions, dev->sessions);
	bitmap_zero(dev->bad_sessions, dev->sessions);
	for (i = 0; i < dev->depth; i++) {
		slot = &dev->slots[i];
		if (slot->phase == CLE_SLOT_WITHHELD && answered) {
			slot->phase = CLE_SLOT_FREE;
			list_add(&slot->list, &dev->free);
			dev->free_count++;
		} else if (slot->phase == CLE_SLOT_FLYING) {
			slot->phase = CLE_SLOT_ENDED;
			list_add_tail(&slot->list, &aborted);
		}
	}
	dev->flying = 0;
	dev->state = answered && again ? CLE_UP : CLE_DOWN;
	spin_unlock_bh(&dev->lock);

	if (answered) {
		dev->pause_ms = 0;
		if (again) {
			pci_set_master(dev->pdev);
			cle_set(dev, CLE_REG_INTERRUPTS, 1);
		}
	} else {
		dev->pause_ms = clamp(2 * dev->pause_ms, CLE_FIRST_PAUSE, CLE_LAST_PAUSE);
		dev->retry = jiffies + msecs_to_jiffies(dev->pause_ms);
		dev_warn_ratelimited(&dev->pdev->dev,
				     "no answer: software serves, another try in %u ms\n",
				     dev->pause_ms);
	}
	cle_end(dev, &ended);
	list_for_each_entry_safe(slot, next, &aborted, list) {
		struct skcipher_request *req = slot->req;

		list_del(&slot->list);
		if (req) {
			struct cle_ctx *ctx = crypto_skcipher_ctx(crypto_skcipher_reqtfm(req));

			cle_unmap(dev, slot);
			atomic_dec(&ctx->flying);
			cle_finish_in_software(req, CLE_STAT_SOFTWARE_FAILED);
		} else {
			cle_wipe_key(dev, slot);
		}
		if (answered || !slot->bounced) {
			cle_release(dev, slot);
		} else {
			/* A device that is only late would write over another's copy. */
			slot->req = NULL;
			slot->phase = CLE_SLOT_WITHHELD;
		}
	}
	tasklet_enable(&dev->tasklet);
	cle_pump(dev);
	wake_up(&dev->idle);
}

static bool cle_is_overdue(struct cle_device *dev)
{
	unsigned long timeout = msecs_to_jiffies(clamp(cle_timeout_ms, 10U, 60000U));
	bool overdue = false;
	unsigned int i;

	spin_lock_bh(&dev->lock);
	if (dev->flying) {
		overdue = time_after(jiffies, dev->progress + timeout);
		for (i = 0; i < dev->depth && !overdue; i++)
			overdue = dev->slots[i].phase == CLE_SLOT_FLYING &&
				  time_after(jiffies, dev->slots[i].since + CLE_PATIENCE * timeout);
	}
	spin_unlock_bh(&dev->lock);
	return overdue;
}

static void cle_watch(struct work_struct *work)
{
	struct cle_device *dev = container_of(to_delayed_work(work), struct cle_device, watch);
	u32 head = READ_ONCE(dev->head);
	bool waiting;

	if (READ_ONCE(dev->stopping))
		return;
	if (dev->state == CLE_DOWN) {
		if (time_before(jiffies, dev->retry)) {
			queue_delayed_work(dev->workqueue, &dev->watch, dev->retry - jiffies + 1);
			return;
		}
		cle_recover(dev, true);
	} else if (READ_ONCE(dev->broken)) {
		cle_recover(dev, true);
	} else if (cle_is_overdue(dev)) {
		cle_count(CLE_STAT_TIMEOUTS);
		cle_recover(dev, true);
	} else {
		/* The same completion waits since the last tick: its interrupt is lost. */
		waiting = cle_get(dev, CLE_REG_COMPLETE_TAIL) != head;
		if (waiting && dev->ticks_waiting && dev->ticks_head == head)
			dev->kicked = true;
		if (dev->kicked || crypto_queue_len(&dev->queue))
			tasklet_schedule(&dev->tasklet);
		dev->ticks_waiting = waiting;
		dev->ticks_head = head;
	}
	if (dev->state != CLE_UP || dev->flying || dev->next || crypto_queue_len(&dev->queue))
		cle_watch_soon(dev);
}

/* --- The beginning and the end -------------------------------------------------------- */

static u32 cle_epochs;

int cle_ring_init(struct cle_device *dev, unsigned int depth, size_t bounce)
{
	struct device *parent = &dev->pdev->dev;
	unsigned int i;

	spin_lock_init(&dev->lock);
	INIT_LIST_HEAD(&dev->free);
	init_waitqueue_head(&dev->idle);
	tasklet_setup(&dev->tasklet, cle_tasklet);
	INIT_DELAYED_WORK(&dev->watch, cle_watch);
	crypto_init_queue(&dev->queue, CLE_QUEUE);
	dev->state = CLE_DOWN;
	dev->retry = jiffies;
	/* Far from those of other devices: a key that was loaded there is not here. */
	cle_epochs += 1 << 20;
	dev->epoch = cle_epochs;
	dev->reset = cle_get(dev, CLE_REG_RESET);
	dev->depth = depth;
	cle_bounce_len = bounce;
	dev->slots = devm_kcalloc(parent, depth, sizeof(*dev->slots), GFP_KERNEL);
	dev->used_sessions = devm_bitmap_zalloc(parent, dev->sessions, GFP_KERNEL);
	dev->stale_sessions = devm_bitmap_zalloc(parent, dev->sessions, GFP_KERNEL);
	dev->bad_sessions = devm_bitmap_zalloc(parent, dev->sessions, GFP_KERNEL);
	if (!dev->slots || !dev->used_sessions || !dev->stale_sessions || !dev->bad_sessions)
		return -ENOMEM;
	for (i = 0; i < depth; i++) {
		struct cle_slot *slot = &dev->slots[i];

		slot->id = i;
		/* Once and for all: a request that writes a page out must not need memory. */
		slot->bounce = dmam_alloc_coherent(parent, bounce, &slot->bounce_dma, GFP_KERNEL);
		if (!slot->bounce)
			return -ENOMEM;
		list_add_tail(&slot->list, &dev->free);
		dev->free_count++;
	}
	dev->workqueue = alloc_workqueue(CLE_NAME, WQ_MEM_RECLAIM | WQ_HIGHPRI, 1);
	return dev->workqueue ? 0 : -ENOMEM;
}

int cle_ring_reset(struct cle_device *dev)
{
	cle_recover(dev, true);
	return dev->state == CLE_UP ? 0 : -EIO;
}

/* Nobody gives requests any more: waits for those under way, then takes them back. */
void cle_ring_stop(struct cle_device *dev)
{
	wait_event_timeout(dev->idle,
			   !READ_ONCE(dev->flying) && !crypto_queue_len(&dev->queue) &&
			   !READ_ONCE(dev->next), msecs_to_jiffies(2 * cle_timeout_ms) + HZ);
	WRITE_ONCE(dev->stopping, true);
	cancel_delayed_work_sync(&dev->watch);
	cle_recover(dev, false);
	/* Those that were still on their way to it have found it down. */
	cancel_delayed_work_sync(&dev->watch);
	cle_pump(dev);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * The two rings, interrupts, the reset.
 *
 * Whatever the device writes is checked: completions name a slot and its turn, so that
 * one that is reported twice, late, or for a request never made is told from a good one; an
 * index that cannot be is answered by a reset.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>

#include "engine.h"

/* Resets in a row for a device that may be slow to hear. */
#define CLE_RESETS	3

static u32 cle_get(struct cle_device *dev, u32 offset)
{
	return readl(dev->bar + offset);
}

static void cle_set(struct cle_device *dev, u32 offset, u32 value)
{
	/* A barrier stands before the write: the device sees what was written before. */
	writel(value, dev->bar + offset);
}

static void cle_announce(struct cl_device *common, bool now)
{
	cl_count(CL_STAT_DOORBELLS);
	writel(CLE_DOORBELL_DEVICE, cle_of(common)->doorbell);
}

/* Descriptors for which there is room. */
static u32 cle_room(struct cl_device *common)
{
	struct cle_device *dev = cle_of(common);
	u32 used = dev->tail - cle_get(dev, CLE_REG_SUBMIT_HEAD);

	if (used > dev->ring) {
		common->broken = true;
		return 0;
	}
	return dev->ring - used;
}

static enum cl_result cle_result(struct cl_slot *slot, const struct cle_completion *completion)
{
	switch (le32_to_cpu(completion->status)) {
	case CLE_DONE:
		/* All of it or nothing. */
		return slot->req && le64_to_cpu(completion->written) != slot->req->len ?
			       CL_FAILED : CL_DONE;
	case CLE_BAD_TAG:
		return slot->req && cl_is_aead(slot->req->ctx->alg) && !slot->req->encrypt ?
			       CL_BAD_TAG : CL_FAILED;
	default:
		return CL_FAILED;
	}
}

/* Takes completions from the ring. Returns how many there were. */
static u32 cle_collect(struct cl_device *common, struct list_head *ended)
{
	struct cle_device *dev = cle_of(common);
	u32 tail = cle_get(dev, CLE_REG_COMPLETE_TAIL);
	u32 status = cle_get(dev, CLE_REG_STATUS);
	u32 count = tail - dev->head;
	u32 i;

	if (count > dev->ring || status != CLE_STATUS_READY)
		WRITE_ONCE(common->broken, true);
	if (!count || count > dev->ring)
		return 0;
	spin_lock_bh(&common->lock);
	for (i = 0; i < count; i++) {
		u32 index = (dev->head + i) & (dev->ring - 1);
		u32 offset = CLE_REGISTERS + (dev->ring + index) * CLE_ENTRY;
		struct cle_completion completion;
		struct cl_slot *slot = NULL;
		u16 id;

		memcpy_fromio(&completion, dev->bar + offset, sizeof(completion));
		id = le16_to_cpu(completion.slot);
		if (id < common->depth)
			slot = &common->slots[id];
		if (!slot || slot->phase != CL_SLOT_FLYING ||
		    slot->turn != le16_to_cpu(completion.turn)) {
			cl_count(CL_STAT_SPURIOUS_COMPLETIONS);
			continue;
		}
		cl_ended(common, slot, cle_result(slot, &completion), ended);
	}
	spin_unlock_bh(&common->lock);
	dev->head = tail;
	cle_set(dev, CLE_REG_COMPLETE_HEAD, tail);
	return count;
}

static bool cle_waits(struct cl_device *common)
{
	struct cle_device *dev = cle_of(common);

	return cle_get(dev, CLE_REG_COMPLETE_TAIL) != READ_ONCE(dev->head);
}

static bool cle_listen(struct cl_device *common)
{
	struct cle_device *dev = cle_of(common);

	cle_set(dev, CLE_REG_INTERRUPTS, 1);
	/* Against the device's: it reports, then looks whether an interrupt is wanted. */
	mb();
	return cle_get(dev, CLE_REG_COMPLETE_TAIL) == dev->head;
}

irqreturn_t cle_interrupt(int irq, void *data)
{
	struct cle_device *dev = data;

	cle_set(dev, CLE_REG_INTERRUPTS, 0);
	cl_interrupted(&dev->common);
	return IRQ_HANDLED;
}

/* Asks for a reset; whether it was answered. From then on the device touches no memory. */
static bool cle_ask_reset(struct cle_device *dev)
{
	unsigned long limit = jiffies + msecs_to_jiffies(cle_reset_ms) + 1;

	cle_set(dev, CLE_REG_INTERRUPTS, 0);
	/* It begins with empty rings, and may look at them as soon as it is reset. */
	cle_set(dev, CLE_REG_SUBMIT_TAIL, 0);
	cle_set(dev, CLE_REG_COMPLETE_HEAD, 0);
	cle_set(dev, CLE_REG_RESET, ++dev->reset);
	cle_announce(&dev->common, true);
	for (;;) {
		bool late = time_after(jiffies, limit);

		if (cle_get(dev, CLE_REG_RESET_DONE) == dev->reset)
			return true;
		if (late)
			break;
		usleep_range(100, 200);
	}
	return false;
}

static enum cl_reset cle_reset(struct cl_device *common, bool again)
{
	struct cle_device *dev = cle_of(common);
	bool answered = false;
	int i;

	for (i = 0; i < CLE_RESETS && !answered; i++)
		answered = cle_ask_reset(dev);
	if (!answered)
		pci_clear_master(dev->pdev);
	spin_lock_bh(&common->lock);
	dev->tail = 0;
	dev->head = 0;
	spin_unlock_bh(&common->lock);
	if (!answered)
		return CL_RESET_SILENT;
	if (again) {
		pci_set_master(dev->pdev);
		cle_set(dev, CLE_REG_INTERRUPTS, 1);
	}
	return CL_RESET_WORKS;
}

const struct cl_ops cle_ops = {
	.plan = cle_plan,
	.fill = cle_fill,
	.unfill = cle_unfill,
	.room = cle_room,
	.give = cle_give,
	.give_key = cle_give_key,
	.wipe_copy = cle_wipe_copy,
	.announce = cle_announce,
	.collect = cle_collect,
	.waits = cle_waits,
	.listen = cle_listen,
	.reset = cle_reset,
};

int cle_ring_init(struct cle_device *dev, unsigned int depth)
{
	struct device *parent = &dev->pdev->dev;
	struct cle_slot *slots;
	unsigned int i;
	int ret;

	dev->reset = cle_get(dev, CLE_REG_RESET);
	slots = devm_kcalloc(parent, depth, sizeof(*slots), GFP_KERNEL);
	if (!slots)
		return -ENOMEM;
	ret = cl_queue_init(&dev->common, parent, &cle_ops, depth);
	for (i = 0; i < depth && !ret; i++) {
		void *bounce = dmam_alloc_coherent(parent, dev->common.bounce_len,
						   &slots[i].bounce_dma, GFP_KERNEL);

		if (bounce)
			cl_add_slot(&dev->common, &dev->common.slots[i], bounce, &slots[i]);
		else
			ret = -ENOMEM;
	}
	if (ret && dev->common.workqueue)
		destroy_workqueue(dev->common.workqueue);
	return ret;
}

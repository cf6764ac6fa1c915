// SPDX-License-Identifier: GPL-2.0
/*
 * The virtqueues, the hello, the reset.
 *
 * A reset of the device is that of virtio, after which it touches no memory. A back-end
 * that died is found by a timeout; the device is then opened again and again, until a
 * back-end answers the hello.
 */
#include <linux/delay.h>
#include <linux/rcupdate.h>
#include <linux/virtio_config.h>
#include <linux/virtio_crypto.h>
#include <linux/virtio_ring.h>

#include "virtio.h"
#include "compat.h"

/* Under the lock: sends what may go. Returns the queues that have to be told of it. */
static u32 clv_prepare(struct clv_device *dev, bool now)
{
	u32 rings = 0;
	unsigned int i;

	if (dev->common.state != CL_UP)
		return 0;
	for (i = 0; i < dev->queue_count; i++) {
		clv_send(dev, &dev->queues[i], now);
		if (dev->queues[i].is_fresh && virtqueue_kick_prepare(dev->queues[i].vq))
			rings |= BIT(i);
		dev->queues[i].is_fresh = false;
	}
	return rings;
}

/* Without the lock, which others need. Whoever takes the queues away waits for us. */
static void clv_notify(struct clv_device *dev, u32 rings)
{
	unsigned int i;

	for (i = 0; i < dev->queue_count; i++) {
		if (rings & BIT(i)) {
			cl_count(CL_STAT_DOORBELLS);
			virtqueue_notify(dev->queues[i].vq);
		}
	}
}

void clv_announce(struct cl_device *common, bool now)
{
	struct clv_device *dev = clv_of(common);
	bool has_to = now;
	unsigned int i;
	u32 rings;

	for (i = 0; i < dev->queue_count && !has_to; i++)
		has_to = READ_ONCE(dev->queues[i].is_fresh) ||
			 clv_has_to_send(&dev->queues[i], now);
	if (!has_to)
		return;
	spin_lock_bh(&common->lock);
	rings = clv_prepare(dev, now);
	spin_unlock_bh(&common->lock);
	clv_notify(dev, rings);
}

static u32 clv_room(struct cl_device *common)
{
	struct clv_device *dev = clv_of(common);
	u32 room = U32_MAX;
	unsigned int i;

	for (i = 0; i < dev->queue_count; i++)
		room = min(room, dev->queues[i].vq->num_free - dev->queues[i].gathered_units);
	return room;
}

static u32 clv_collect(struct cl_device *common, struct list_head *ended)
{
	struct clv_device *dev = clv_of(common);
	struct clv_chain *chain;
	u32 count = 0;
	u32 rings;
	u32 written;
	unsigned int i;

	spin_lock_bh(&common->lock);
	for (i = 0; i < dev->queue_count; i++) {
		struct clv_queue *queue = &dev->queues[i];

		if (!queue->vq)
			continue;
		virtqueue_disable_cb(queue->vq);
		while ((chain = virtqueue_get_buf(queue->vq, &written)))
			count += clv_end_chain(dev, queue, chain, written, ended);
		if (virtqueue_is_broken(queue->vq))
			WRITE_ONCE(common->broken, true);
	}
	/* At once, so that the device works while the results go to their users. */
	rings = clv_prepare(dev, true);
	spin_unlock_bh(&common->lock);
	clv_notify(dev, rings);
	return count;
}

static bool clv_waits(struct cl_device *common)
{
	return READ_ONCE(common->flying);
}

static bool clv_listen(struct cl_device *common)
{
	struct clv_device *dev = clv_of(common);
	bool rests = true;
	unsigned int i;

	spin_lock_bh(&common->lock);
	for (i = 0; i < dev->queue_count; i++) {
		struct virtqueue *vq = dev->queues[i].vq;

		if (vq && !virtqueue_is_broken(vq))
			rests &= virtqueue_enable_cb(vq);
	}
	spin_unlock_bh(&common->lock);
	return rests;
}

static void clv_done(struct virtqueue *vq)
{
	struct clv_device *dev = vq->vdev->priv;

	if (READ_ONCE(dev->opened))
		cl_interrupted(&dev->common);
}

/* The back-end answers, and all that it knew of this driver is gone. The queue is empty. */
static int clv_say_hello(struct clv_device *dev, struct virtqueue *vq)
{
	unsigned long limit = jiffies + msecs_to_jiffies(clamp(cl_timeout_ms, 10U, 60000U)) + 1;
	struct scatterlist out, answer, status;
	struct scatterlist *lists[] = { &out, &answer, &status };
	unsigned int len;
	bool late;
	int ret;

	memset(&dev->hello, 0, sizeof(dev->hello));
	memset(&dev->answer, 0, sizeof(dev->answer));
	dev->hello.opcode = cpu_to_le32(CLV_OP_HELLO);
	dev->hello.version = cpu_to_le32(CLV_VERSION);
	dev->hello.magic = cpu_to_le64(CLV_MAGIC);
	/* QEMU does not tell a vhost-user back-end what was negotiated. */
	dev->hello.says_when =
		cpu_to_le32(virtio_has_feature(dev->vdev, VIRTIO_RING_F_EVENT_IDX));
	dev->status = CLV_NO_STATUS;
	sg_init_one(&out, &dev->hello, sizeof(dev->hello));
	sg_init_one(&answer, &dev->answer, sizeof(dev->answer));
	sg_init_one(&status, &dev->status, sizeof(dev->status));
	ret = virtqueue_add_sgs(vq, lists, 1, 2, &dev->hello, GFP_KERNEL);
	if (ret)
		return ret;
	virtqueue_kick(vq);
	for (;;) {
		late = time_after(jiffies, limit);
		if (virtqueue_get_buf(vq, &len) == &dev->hello)
			break;
		if (late || virtqueue_is_broken(vq))
			return -ETIMEDOUT;
		usleep_range(100, 200);
	}
	if (READ_ONCE(dev->status) != VIRTIO_CRYPTO_OK ||
	    le64_to_cpu(dev->answer.magic) != CLV_MAGIC ||
	    le32_to_cpu(dev->answer.version) != CLV_VERSION)
		return -ENODEV;
	return 0;
}

/* What the back-end offers: at the first time, and again after each reset. */
static int clv_read_rules(struct clv_device *dev)
{
	struct cl_device *common = &dev->common;
	u32 sessions = min(le32_to_cpu(dev->answer.sessions), 65536U);

	/* The tables have room for those of the first time. */
	if (!common->sessions)
		common->sessions = sessions;
	else if (sessions < common->sessions)
		return -ENODEV;
	common->features = le64_to_cpu(dev->answer.algorithms) & ~BIT_ULL(CL_ECB_AES);
	common->max_request = le32_to_cpu(dev->answer.max_len);
	dev->together = clamp(le32_to_cpu(dev->answer.max_count), 1U, (u32)CLV_TOGETHER);
	return sessions ? 0 : -ENODEV;
}

/* The first queues are those for data. */
static int clv_find_queues(struct clv_device *dev)
{
	struct virtqueue *vqs[CLV_QUEUES];
	u32 offered;
	unsigned int i;
	int ret;

	virtio_cread_le(dev->vdev, struct virtio_crypto_config, max_dataqueues, &offered);
	/* The first time there may be as many as there are processors, then those that answered. */
	dev->found = clamp(dev->queue_count ?: min(offered, num_online_cpus()), 1U,
			   (u32)CLV_QUEUES);
	ret = clv_find_vqs(dev->vdev, dev->found, vqs, clv_done);
	if (ret)
		return ret;
	for (i = 0; i < dev->found; i++) {
		dev->queues[i].vq = vqs[i];
		virtqueue_disable_cb(vqs[i]);
	}
	return 0;
}

/*
 * Greets the back-end through each queue. QEMU gives a vhost-user back-end the first one only
 * and serves the others itself, which knows nothing of these operations: such queues rest.
 */
static int clv_greet(struct clv_device *dev)
{
	int ret = clv_say_hello(dev, dev->queues[0].vq);
	unsigned int i;

	for (i = 1; i < dev->found && !ret; i++) {
		ret = clv_say_hello(dev, dev->queues[i].vq);
		if (ret == -ENODEV && !dev->queue_count) {
			dev->queue_count = i;
			return clv_say_hello(dev, dev->queues[0].vq);
		}
	}
	if (!ret)
		dev->queue_count = dev->found;
	return ret;
}

/* From a device that has features to one that works. */
int clv_open(struct clv_device *dev)
{
	struct virtio_device *vdev = dev->vdev;
	u32 status;
	int ret;

	virtio_cread_le(vdev, struct virtio_crypto_config, status, &status);
	if (!(status & VIRTIO_CRYPTO_S_HW_READY))
		return -ENOLINK;
	ret = clv_find_queues(dev);
	if (ret)
		return ret;
	virtio_device_ready(vdev);
	ret = clv_greet(dev) ?: clv_read_rules(dev);
	WRITE_ONCE(dev->opened, !ret);
	return ret;
}

/* Takes all from the device. */
void clv_close(struct clv_device *dev)
{
	struct virtio_device *vdev = dev->vdev;
	unsigned int i;

	WRITE_ONCE(dev->opened, false);
	virtio_reset_device(vdev);
	if (!dev->queues[0].vq)
		return;
	/* Those who still tell the device of something are done after this. */
	synchronize_rcu();
	for (i = 0; i < dev->found; i++) {
		clv_drop_chains(dev, &dev->queues[i]);
		dev->queues[i].vq = NULL;
	}
	vdev->config->del_vqs(vdev);
}

static int clv_negotiate(struct virtio_device *vdev)
{
	int ret;

	virtio_add_status(vdev, VIRTIO_CONFIG_S_ACKNOWLEDGE);
	virtio_add_status(vdev, VIRTIO_CONFIG_S_DRIVER);
	ret = vdev->config->finalize_features(vdev);
	if (ret)
		return ret;
	virtio_add_status(vdev, VIRTIO_CONFIG_S_FEATURES_OK);
	return vdev->config->get_status(vdev) & VIRTIO_CONFIG_S_FEATURES_OK ? 0 : -ENODEV;
}

static enum cl_reset clv_reset(struct cl_device *common, bool again)
{
	struct clv_device *dev = clv_of(common);
	int ret;

	/* Nobody else uses the queue: the state says so. The back-end forgets all keys. */
	if (!again && dev->opened && !common->flying &&
	    !virtqueue_is_broken(dev->queues[0].vq))
		clv_say_hello(dev, dev->queues[0].vq);
	clv_close(dev);
	if (!again)
		return CL_RESET_WORKS;
	ret = clv_negotiate(dev->vdev) ?: clv_open(dev);
	if (ret)
		dev_dbg(common->parent, "not opened: %d\n", ret);
	return ret ? CL_RESET_STANDS : CL_RESET_WORKS;
}

const struct cl_ops clv_ops = {
	.plan = clv_plan,
	.fill = clv_fill,
	.unfill = clv_unfill,
	.room = clv_room,
	.give = clv_give,
	.give_key = clv_give_key,
	.wipe_copy = clv_wipe_copy,
	.announce = clv_announce,
	.collect = clv_collect,
	.waits = clv_waits,
	.listen = clv_listen,
	.reset = clv_reset,
};

// SPDX-License-Identifier: GPL-2.0
/*
 * The virtqueue, the hello, the reset.
 *
 * A reset of the device is that of virtio, after which it touches no memory. A back-end
 * that died is found by a timeout; the device is then opened again and again, until a
 * back-end answers the hello.
 */
#include <linux/delay.h>
#include <linux/rcupdate.h>
#include <linux/virtio_config.h>
#include <linux/virtio_crypto.h>

#include "virtio.h"

static void clv_announce(struct cl_device *common)
{
	struct clv_device *dev = clv_of(common);
	struct virtqueue *vq;
	bool rings;

	spin_lock_bh(&common->lock);
	vq = common->state == CL_UP ? dev->vq : NULL;
	rings = vq && virtqueue_kick_prepare(vq);
	spin_unlock_bh(&common->lock);
	/* Whoever takes the queue away waits for us. */
	if (rings) {
		cl_count(CL_STAT_DOORBELLS);
		virtqueue_notify(vq);
	}
}

static u32 clv_room(struct cl_device *common)
{
	return clv_of(common)->vq->num_free;
}

static u32 clv_collect(struct cl_device *common, struct list_head *ended)
{
	struct clv_device *dev = clv_of(common);
	struct cl_slot *slot;
	u32 count = 0;
	u32 written;

	spin_lock_bh(&common->lock);
	if (dev->vq) {
		virtqueue_disable_cb(dev->vq);
		while ((slot = virtqueue_get_buf(dev->vq, &written))) {
			count++;
			if (slot->phase == CL_SLOT_FLYING)
				cl_ended(common, slot, clv_result(slot, written), ended);
			else
				cl_count(CL_STAT_SPURIOUS_COMPLETIONS);
		}
		if (virtqueue_is_broken(dev->vq))
			WRITE_ONCE(common->broken, true);
	}
	spin_unlock_bh(&common->lock);
	return count;
}

static bool clv_waits(struct cl_device *common)
{
	return READ_ONCE(common->flying);
}

static bool clv_listen(struct cl_device *common)
{
	struct clv_device *dev = clv_of(common);
	bool rests;

	spin_lock_bh(&common->lock);
	rests = !dev->vq || virtqueue_is_broken(dev->vq) || virtqueue_enable_cb(dev->vq);
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
static int clv_say_hello(struct clv_device *dev)
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
	dev->status = CLV_NO_STATUS;
	sg_init_one(&out, &dev->hello, sizeof(dev->hello));
	sg_init_one(&answer, &dev->answer, sizeof(dev->answer));
	sg_init_one(&status, &dev->status, sizeof(dev->status));
	ret = virtqueue_add_sgs(dev->vq, lists, 1, 2, &dev->hello, GFP_KERNEL);
	if (ret)
		return ret;
	virtqueue_kick(dev->vq);
	for (;;) {
		late = time_after(jiffies, limit);
		if (virtqueue_get_buf(dev->vq, &len) == &dev->hello)
			break;
		if (late || virtqueue_is_broken(dev->vq))
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
	return sessions ? 0 : -ENODEV;
}

/* From a device that has features to one that works. */
int clv_open(struct clv_device *dev)
{
	struct virtio_device *vdev = dev->vdev;
	struct virtqueue *vq;
	u32 status;
	int ret;

	virtio_cread_le(vdev, struct virtio_crypto_config, status, &status);
	if (!(status & VIRTIO_CRYPTO_S_HW_READY))
		return -ENOLINK;
	/* The first queue is one for data. */
	vq = virtio_find_single_vq(vdev, clv_done, "data");
	if (IS_ERR(vq))
		return PTR_ERR(vq);
	dev->vq = vq;
	virtqueue_disable_cb(vq);
	virtio_device_ready(vdev);
	ret = clv_say_hello(dev) ?: clv_read_rules(dev);
	WRITE_ONCE(dev->opened, !ret);
	return ret;
}

/* Takes all from the device. */
void clv_close(struct clv_device *dev)
{
	struct virtio_device *vdev = dev->vdev;
	struct virtqueue *vq = dev->vq;

	WRITE_ONCE(dev->opened, false);
	virtio_reset_device(vdev);
	if (!vq)
		return;
	/* The lock is not there before the first time. */
	dev->vq = NULL;
	synchronize_rcu();
	while (virtqueue_detach_unused_buf(vq))
		;
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
	if (!again && dev->opened && !common->flying && !virtqueue_is_broken(dev->vq))
		clv_say_hello(dev);
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

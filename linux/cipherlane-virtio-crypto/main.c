// SPDX-License-Identifier: GPL-2.0
/*
 * The virtio device: probe and removal.
 *
 * Linux has a driver for it, virtio_crypto, and each device has one driver: the one that
 * is there first gets it.
 */
#include <linux/module.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ids.h>
#include <linux/virtio_ring.h>

#include "virtio.h"

static unsigned int heartbeat_ms = 1000;
module_param(heartbeat_ms, uint, 0444);
MODULE_PARM_DESC(heartbeat_ms,
		 "milliseconds between questions to an idle back-end whether it is there; 0: none (default 1000)");

static int clv_add_slots(struct clv_device *dev, unsigned int depth)
{
	struct cl_device *common = &dev->common;
	struct device *parent = common->parent;
	unsigned int i;

	for (i = 0; i < depth; i++) {
		struct clv_slot *own = devm_kzalloc(parent, sizeof(*own), GFP_KERNEL);
		void *bounce = (void *)devm_get_free_pages(parent, GFP_KERNEL,
							   get_order(common->bounce_len));

		if (!own || !bounce)
			return -ENOMEM;
		sg_init_table(own->out, ARRAY_SIZE(own->out));
		sg_init_table(own->in, ARRAY_SIZE(own->in));
		cl_add_slot(common, &common->slots[i], bounce, own);
	}
	return 0;
}

/* A table of descriptors apart would be memory that is allocated for a request. */
static int clv_validate(struct virtio_device *vdev)
{
	__virtio_clear_bit(vdev, VIRTIO_RING_F_INDIRECT_DESC);
	return 0;
}

static int clv_probe(struct virtio_device *vdev)
{
	struct device *parent = &vdev->dev;
	unsigned int depth, room, i;
	struct clv_device *dev;
	int ret;

	dev = devm_kzalloc(parent, sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	dev->vdev = vdev;
	vdev->priv = dev;
	for (i = 0; i < CLV_QUEUES; i++) {
		INIT_LIST_HEAD(&dev->queues[i].free);
		INIT_LIST_HEAD(&dev->queues[i].gathered);
	}
	ret = clv_open(dev);
	room = dev->queues[0].vq ? virtqueue_get_vring_size(dev->queues[0].vq) : 0;
	if (ret) {
		clv_close(dev);
		dev_err(parent, "the back-end has no operations of Cipherlane (%d); virtio_crypto may serve it\n",
			ret);
		return -ENODEV;
	}
	WRITE_ONCE(dev->opened, false);
	/* A request that is as long as can be must fit. */
	if (room < 2 * (CLV_PIECES + 2)) {
		clv_close(dev);
		dev_err(parent, "a queue of %u descriptors is too short\n", room);
		return -EINVAL;
	}
	depth = clamp(cl_depth, 2U, 1024U);
	dev->common.heartbeat_ms = heartbeat_ms ? clamp(heartbeat_ms, 100U, 60000U) : 0;
	ret = cl_queue_init(&dev->common, parent, &clv_ops, depth) ?:
	      clv_add_chains(dev) ?: clv_add_slots(dev, depth) ?: clv_start_workers(dev);
	if (ret) {
		clv_close(dev);
		goto err_workqueue;
	}
	ret = cl_start(&dev->common);
	if (ret)
		goto err_stop;
	ret = cl_activate(&dev->common);
	if (ret)
		goto err_stop;
	dev_info(parent, "virtio-crypto with %u requests of %u bytes at most, %u queues\n",
		 dev->common.depth, dev->common.max_request, dev->queue_count);
	return 0;

err_stop:
	cl_stop(&dev->common);
	tasklet_kill(&dev->common.tasklet);
err_workqueue:
	clv_stop_workers(dev);
	if (dev->common.workqueue)
		destroy_workqueue(dev->common.workqueue);
	return ret;
}

static void clv_remove(struct virtio_device *vdev)
{
	struct clv_device *dev = vdev->priv;

	cl_deactivate(&dev->common);
	cl_stop(&dev->common);
	tasklet_kill(&dev->common.tasklet);
	clv_stop_workers(dev);
	destroy_workqueue(dev->common.workqueue);
}

#ifdef CONFIG_PM_SLEEP
static int clv_freeze(struct virtio_device *vdev)
{
	struct clv_device *dev = vdev->priv;

	cl_sleep(&dev->common);
	return 0;
}

static int clv_restore(struct virtio_device *vdev)
{
	struct clv_device *dev = vdev->priv;

	cl_wake(&dev->common);
	return 0;
}
#endif

static const struct virtio_device_id clv_ids[] = {
	{ VIRTIO_ID_CRYPTO, VIRTIO_DEV_ANY_ID },
	{ }
};
MODULE_DEVICE_TABLE(virtio, clv_ids);

static struct virtio_driver clv_driver = {
	.driver.name = CL_NAME,
	.driver.owner = THIS_MODULE,
	.id_table = clv_ids,
	.validate = clv_validate,
	.probe = clv_probe,
	.remove = clv_remove,
#ifdef CONFIG_PM_SLEEP
	.freeze = clv_freeze,
	.restore = clv_restore,
#endif
};

static int __init clv_init(void)
{
	int ret;

	cl_stats_init();
	ret = register_virtio_driver(&clv_driver);
	if (ret)
		cl_stats_exit();
	return ret;
}

static void __exit clv_exit(void)
{
	unregister_virtio_driver(&clv_driver);
	cl_unregister_algs();
	cl_stats_exit();
}

module_init(clv_init);
module_exit(clv_exit);
MODULE_DESCRIPTION("Cipherlane: virtio-crypto with more than virtio has");
MODULE_AUTHOR("Cipherlane");
MODULE_LICENSE("GPL");
MODULE_ALIAS_CRYPTO("cbc-aes-cipherlane-virtio");

/* SPDX-License-Identifier: GPL-2.0 */
/* What differs between versions of Linux. */
#ifndef CLV_COMPAT_H
#define CLV_COMPAT_H

#include <linux/err.h>
#include <linux/version.h>
#include <linux/virtio_config.h>

#include "virtio.h"

/* The device's first @count queues, all with the same name and @callback. */
static inline int clv_find_vqs(struct virtio_device *vdev, unsigned int count,
			       struct virtqueue *vqs[], vq_callback_t *callback)
{
	unsigned int i;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
	struct virtqueue_info infos[CLV_QUEUES] = { };

	if (count > CLV_QUEUES)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		infos[i].name = "data";
		infos[i].callback = callback;
	}
	return virtio_find_vqs(vdev, count, vqs, infos, NULL);
#else
	const char *names[CLV_QUEUES];
	vq_callback_t *callbacks[CLV_QUEUES];

	if (count > CLV_QUEUES)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		names[i] = "data";
		callbacks[i] = callback;
	}
	return virtio_find_vqs(vdev, count, vqs, callbacks, names, NULL);
#endif
}

#endif

// SPDX-License-Identifier: GPL-2.0
/*
 * What is done when the processor of a queue has nothing else to do.
 *
 * A thread of the lowest priority runs then. It sends what has gathered, and looks for results
 * until they are there, for a tenth of a millisecond at most. Results that are found so need no
 * interrupt, no thread of the host that delivers it, and no way out of the processor's sleep;
 * for a few short requests these took more time than the device. Whoever else wants the
 * processor gets it at once.
 */
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "virtio.h"

static unsigned int clv_poll_us = 100;
module_param_named(poll_us, clv_poll_us, uint, 0644);
MODULE_PARM_DESC(poll_us,
		 "microseconds for which an idle processor looks for results before it sleeps; 0: none (default 100)");

/* Looks for results. Returns whether there is reason to go on. Under RCU. */
static bool clv_poll(struct clv_device *dev, struct clv_queue *queue)
{
	struct cl_device *common = &dev->common;
	u64 limit = 1000ULL * min(READ_ONCE(clv_poll_us), 1000U);
	struct virtqueue *vq;
	bool found = false;
	unsigned int seen;
	u64 since;

	spin_lock_bh(&common->lock);
	vq = queue->vq;
	if (!limit || common->state != CL_UP || !vq || virtqueue_is_broken(vq) ||
	    !queue->is_under_way) {
		spin_unlock_bh(&common->lock);
		return false;
	}
	/* Only this tells where the device will write next. */
	seen = virtqueue_enable_cb_prepare(vq);
	virtqueue_disable_cb(vq);
	spin_unlock_bh(&common->lock);

	since = ktime_get_ns();
	do
		found = virtqueue_poll(vq, seen);
	while (!found && !need_resched() && ktime_get_ns() - since < limit);
	cl_count(found ? CL_STAT_FOUND_IDLE : CL_STAT_MISSED_IDLE);

	spin_lock_bh(&common->lock);
	found = found || !virtqueue_enable_cb(vq);
	if (found)
		tasklet_schedule(&common->tasklet);
	/* The tasklet runs when this lock is released. */
	spin_unlock_bh(&common->lock);
	return found || need_resched();
}

static void clv_work(struct kthread_work *work)
{
	struct clv_queue *queue = container_of(work, struct clv_queue, work);
	struct clv_device *dev = queue->dev;
	bool again;

	do {
		rcu_read_lock();
		clv_announce(&dev->common, true);
		again = clv_poll(dev, queue);
		rcu_read_unlock();
		/* Those who were given results have the processor, and give the next requests. */
		cond_resched();
	} while (again);
}

static enum hrtimer_restart clv_timer(struct hrtimer *timer)
{
	struct clv_queue *queue = container_of(timer, struct clv_queue, timer);
	struct cl_device *common = &queue->dev->common;
	bool holds_on;

	spin_lock_bh(&common->lock);
	holds_on = clv_holds_on(queue);
	spin_unlock_bh(&common->lock);
	if (holds_on)
		return HRTIMER_NORESTART;
	rcu_read_lock();
	clv_announce(common, true);
	rcu_read_unlock();
	return HRTIMER_NORESTART;
}

/* A thread for each queue, at the processor that uses the queue. */
int clv_start_workers(struct clv_device *dev)
{
	unsigned int i;

	for (i = 0; i < dev->queue_count; i++) {
		struct clv_queue *queue = &dev->queues[i];
		struct kthread_worker *worker;

		queue->dev = dev;
		kthread_init_work(&queue->work, clv_work);
		hrtimer_init(&queue->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
		queue->timer.function = clv_timer;
		worker = kthread_create_worker_on_cpu(i, 0, CL_NAME "/%u", i);
		if (IS_ERR(worker))
			return PTR_ERR(worker);
		sched_set_normal(worker->task, MAX_NICE);
		queue->worker = worker;
	}
	return 0;
}

void clv_stop_workers(struct clv_device *dev)
{
	unsigned int i;

	for (i = 0; i < dev->queue_count; i++) {
		if (!dev->queues[i].worker)
			continue;
		hrtimer_cancel(&dev->queues[i].timer);
		kthread_destroy_worker(dev->queues[i].worker);
	}
}

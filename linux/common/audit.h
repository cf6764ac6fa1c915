/* SPDX-License-Identifier: GPL-2.0 */
/* Results of the device that software makes again: audit.c. */
#ifndef CL_AUDIT_H
#define CL_AUDIT_H

#include <crypto/aes.h>
#include <linux/atomic.h>
#include <linux/scatterlist.h>
#include <linux/workqueue.h>

struct cl_device;
struct cl_req;
struct cl_slot;

/* The request that is audited. */
struct cl_audit {
	atomic_t turn;
	struct cl_req *req;			/* whoever sets it has the rest */
	struct cl_slot *slot;
	struct scatterlist *src;		/* of its user */
	u8 *iv;
	void *copy;
	struct scatterlist sg;
	u8 iv_copy[AES_BLOCK_SIZE];
	struct work_struct work;
};

void cl_pick_for_audit(struct cl_device *dev, struct cl_req *req);
int cl_audit_init(struct cl_device *dev);
void cl_drop_audit(struct cl_device *dev, struct cl_req *req);
void cl_audit_later(struct cl_device *dev, struct cl_slot *slot);
void cl_audit(struct work_struct *work);

#endif

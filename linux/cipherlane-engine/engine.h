/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The transport's own structures; the rest is in ../common.
 *
 *	main.c		the PCI device: probe, removal
 *	ring.c		the two rings, interrupts, the reset
 *	request.c	from a request of the CryptoAPI to descriptors
 */
#ifndef CLE_ENGINE_H
#define CLE_ENGINE_H

#include <linux/pci.h>

#include "cipherlane.h"
#include "wire.h"

struct cle_device {
	struct cl_device common;
	struct pci_dev *pdev;
	void __iomem *doorbell;
	void __iomem *bar;
	int irq;

	/* What the device said of itself, read once and checked. */
	u32 ring;
	u32 alignment;
	u32 block;
	u32 segment;

	u32 tail;				/* descriptors made; under the lock */
	u32 head;				/* completions seen; of the tasklet */
	u32 reset;				/* number of the last one */
};

static inline struct cle_device *cle_of(struct cl_device *dev)
{
	return container_of(dev, struct cle_device, common);
}

/* What a slot needs for DMA. */
struct cle_slot {
	dma_addr_t bounce_dma;
	int src_nents;				/* as given to dma_map_sg(); 0: bounced */
	int dst_nents;
	int src_mapped;				/* as returned by it */
	int dst_mapped;
	u32 descriptors;			/* that are still to be written */
};

/* main.c */
extern unsigned int cle_reset_ms;

/* ring.c */
extern const struct cl_ops cle_ops;
int cle_ring_init(struct cle_device *dev, unsigned int depth);
irqreturn_t cle_interrupt(int irq, void *data);

/* request.c */
bool cle_plan(struct cl_device *common, struct cl_req *req, struct cl_plan *plan);
int cle_fill(struct cl_device *common, struct cl_slot *slot, const struct cl_plan *plan);
void cle_unfill(struct cl_device *common, struct cl_slot *slot);
int cle_give(struct cl_device *common, struct cl_slot *slot);
int cle_give_key(struct cl_device *common, struct cl_slot *slot, struct cl_ctx *ctx);
void cle_wipe_copy(struct cl_device *common, struct cl_slot *slot);

#endif

// SPDX-License-Identifier: GPL-2.0
/* Scatter lists, for the transports: whether two are the same memory, and copies of them. */
#include <linux/scatterlist.h>

#include "cipherlane.h"

/* Entries of a list that are compared with those of another. */
#define CL_COMPARED	32

/* Memory of an entry of a list. */
struct cl_span {
	phys_addr_t from;
	phys_addr_t to;
};

static struct cl_span cl_span(struct scatterlist *sg, u32 len)
{
	phys_addr_t from = sg_phys(sg);

	return (struct cl_span){ from, from + min(sg->length, len) };
}

/*
 * Whether any of the first @len bytes of both lists are the same memory. Each entry of one is
 * compared with each of the other, so these are computed once.
 */
bool cl_overlaps(struct scatterlist *a, struct scatterlist *b, u32 len)
{
	struct cl_span others[CL_COMPARED];
	struct scatterlist *sg;
	int count = 0;
	int i, j;
	u32 left;

	if (a == b)
		return true;
	for (sg = b, left = len; sg && left; sg = sg_next(sg)) {
		if (count == CL_COMPARED)
			return true;	/* too long to tell */
		others[count++] = cl_span(sg, left);
		left -= min(sg->length, left);
	}
	for (sg = a, left = len, i = 0; sg && left; sg = sg_next(sg), i++) {
		struct cl_span span = cl_span(sg, left);

		if (i == CL_COMPARED)
			return true;
		for (j = 0; j < count; j++)
			if (span.from < others[j].to && others[j].from < span.to)
				return true;
		left -= min(sg->length, left);
	}
	return false;
}

/* Additional data and payload into the bounce buffer. */
void cl_copy_in(struct cl_slot *slot)
{
	struct cl_req *req = slot->req;

	sg_copy_to_buffer(req->src, sg_nents(req->src), slot->bounce, req->skip + req->in_len);
}

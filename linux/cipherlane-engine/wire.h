/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What stands in the memory that driver and device share (BAR 2).
 *
 * This is crates/dma-model/src/transport/wire.rs in C. All numbers are
 * little-endian. A request is a chain of descriptors: its operation, then pieces
 * that the device reads, then pieces that it writes.
 */
#ifndef CLE_WIRE_H
#define CLE_WIRE_H

#include <linux/bits.h>
#include <linux/types.h>

#define CLE_MAGIC		0x0001676e69726c63ULL	/* "clring\x01\x00" */

/* Registers: offsets in bytes. Those without a note are written by the device. */
#define CLE_REG_MAGIC		0x000	/* 64 bits */
#define CLE_REG_FEATURES	0x008	/* 64 bits, one for each algorithm */
#define CLE_REG_STATUS		0x010
#define CLE_REG_RESET		0x014	/* driver: another number asks for a reset */
#define CLE_REG_RESET_DONE	0x018
#define CLE_REG_INTERRUPTS	0x01c	/* driver: whether it wants interrupts */
#define CLE_REG_SUBMIT_TAIL	0x040	/* driver: descriptors made */
#define CLE_REG_SUBMIT_HEAD	0x080	/* descriptors fetched */
#define CLE_REG_COMPLETE_TAIL	0x0c0	/* completions made */
#define CLE_REG_COMPLETE_HEAD	0x100	/* driver: completions seen */
#define CLE_REG_RING		0x140
#define CLE_REG_ALIGNMENT	0x144
#define CLE_REG_BLOCK		0x148
#define CLE_REG_MAX_SEGMENT	0x14c
#define CLE_REG_MAX_REQUEST	0x150
#define CLE_REG_SESSIONS	0x154
#define CLE_REG_KEY_BITS	0x158
#define CLE_REGISTERS		0x200

#define CLE_STATUS_READY	1

/* The doorbell of ivshmem (BAR 0): peer and vector. */
#define CLE_DOORBELL		12
#define CLE_DOORBELL_DEVICE	BIT(16)

#define CLE_RING_MAX		32768
#define CLE_ENTRY		16
#define CLE_SLOT		256
/* In a slot: the operation, then a key or additional data, then a tag. */
#define CLE_OPERATION		128
#define CLE_AAD			64
#define CLE_TAG			64

/* An address of the bus; others are offsets in BAR 2. */
#define CLE_BUS			BIT_ULL(63)

#define CLE_DESC_MORE		BIT(0)
#define CLE_DESC_WRITE		BIT(1)
#define CLE_DESC_HEADER		BIT(2)
#define CLE_DESC_BOUNCE		BIT(3)

struct cle_descriptor {
	__le64 address;
	__le32 len;
	__le16 flags;
	__le16 slot;
};

struct cle_completion {
	__le16 slot;
	__le16 turn;
	__le32 status;
	__le64 written;
};

#define CLE_DONE		0
#define CLE_BAD_TAG		1

enum cle_opcode {
	CLE_OP_ENCRYPT = 1,
	CLE_OP_DECRYPT = 2,
	CLE_OP_LOAD_KEY = 3,
	CLE_OP_WIPE_KEY = 4,
};

struct cle_operation {
	u8 opcode;
	u8 algorithm;
	u8 tag_len;
	u8 iv_len;
	__le16 turn;
	__le16 reserved;
	__le32 session;
	__le32 len;
	__le64 aad_len;
	__le64 aad;
	__le64 tag;
	u8 iv[16];
};

#endif

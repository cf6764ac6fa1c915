/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What driver and back-end say to each other on the data queue, beside what virtio has.
 *
 * This is crates/device/src/vhost_user/private.rs in C, where it is explained.
 */
#ifndef CLV_WIRE_H
#define CLV_WIRE_H

#include <linux/types.h>

#define CLV_MAGIC	0x7470797263766c63ULL	/* "clvcrypt" */
#define CLV_VERSION	1

#define CLV_OP_HELLO	0x434c0001
#define CLV_OP_OPEN	0x434c0002
#define CLV_OP_CLOSE	0x434c0003
#define CLV_OP_RUN	0x434c0004

struct clv_header {
	__le32 opcode;
	__le32 version;
	__le64 magic;
	__le32 session;
	__le32 algorithm;
	__le32 key_len;
	__le32 tag_len;
	__le32 count;
	__le32 says_when;
	__le32 reserved[8];
};

struct clv_entry {
	__le32 session;
	u8 decrypt;
	u8 iv_len;
	u8 tag_len;
	u8 skip;
	__le32 aad_len;
	__le32 len;
	u8 iv[16];
};

struct clv_hello {
	__le64 magic;
	__le32 version;
	__le32 max_count;
	__le32 max_len;
	__le32 sessions;
	__le64 algorithms;
	__le32 reserved[2];
};

#endif

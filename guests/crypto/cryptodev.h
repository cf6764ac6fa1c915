/*
 * The interface of /dev/crypto on Linux: what the header <crypto/cryptodev.h> of cryptodev-linux
 * 1.14 defines, as far as programs here need it. No package of Debian has that header. Written from
 * the documented layout; the original is in the public domain.
 */
#ifndef CRYPTODEV_H
#define CRYPTODEV_H

#include <linux/ioctl.h>
#include <linux/types.h>

enum cryptodev_crypto_op_t {
	CRYPTO_DES_CBC = 1,
	CRYPTO_3DES_CBC = 2,
	CRYPTO_BLF_CBC = 3,
	CRYPTO_CAST_CBC = 4,
	CRYPTO_MD5_HMAC = 6,
	CRYPTO_SHA1_HMAC = 7,
	CRYPTO_AES_CBC = 11,
	CRYPTO_ARC4 = 12,
	CRYPTO_MD5 = 13,
	CRYPTO_SHA1 = 14,
	CRYPTO_NULL = 16,
	CRYPTO_SHA2_256_HMAC = 18,
	CRYPTO_SHA2_384_HMAC = 19,
	CRYPTO_SHA2_512_HMAC = 20,
	CRYPTO_AES_CTR = 21,
	CRYPTO_AES_XTS = 22,
	CRYPTO_AES_ECB = 23,
	CRYPTO_AES_GCM = 50,
	CRYPTO_CAMELLIA_CBC = 101,
	CRYPTO_RIPEMD160 = 102,
	CRYPTO_SHA2_224 = 103,
	CRYPTO_SHA2_256 = 104,
	CRYPTO_SHA2_384 = 105,
	CRYPTO_SHA2_512 = 106,
};

#define CRYPTODEV_MAX_ALG_NAME 64
#define HASH_MAX_LEN 64

struct session_op {
	__u32 cipher;
	__u32 mac;
	__u32 keylen;
	__u8 *key;
	__u32 mackeylen;
	__u8 *mackey;
	__u32 ses;
};

struct session_info_op {
	__u32 ses;
	struct alg_info {
		char cra_name[CRYPTODEV_MAX_ALG_NAME];
		char cra_driver_name[CRYPTODEV_MAX_ALG_NAME];
	} cipher_info, hash_info;
	__u16 alignmask;
	__u32 flags;
};

#define SIOP_FLAG_KERNEL_DRIVER_ONLY 1

#define COP_ENCRYPT 0
#define COP_DECRYPT 1

struct crypt_op {
	__u32 ses;
	__u16 op;
	__u16 flags;
	__u32 len;
	__u8 *src;
	__u8 *dst;
	__u8 *mac;
	__u8 *iv;
};

struct crypt_auth_op {
	__u32 ses;
	__u16 op;
	__u16 flags;
	__u32 len;
	__u32 auth_len;
	__u8 *auth_src;
	__u8 *src;
	__u8 *dst;
	__u8 *tag;
	__u32 tag_len;
	__u8 *iv;
	__u32 iv_len;
};

#define COP_FLAG_NONE 0
#define COP_FLAG_UPDATE (1 << 0)
#define COP_FLAG_FINAL (1 << 1)
#define COP_FLAG_WRITE_IV (1 << 2)
#define COP_FLAG_NO_ZC (1 << 3)
#define COP_FLAG_AEAD_TLS_TYPE (1 << 4)
#define COP_FLAG_AEAD_SRTP_TYPE (1 << 5)
#define COP_FLAG_RESET (1 << 6)

struct cphash_op {
	__u32 dst_ses;
	__u32 src_ses;
};

#define CIOCGSESSION _IOWR('c', 102, struct session_op)
#define CIOCFSESSION _IOW('c', 103, __u32)
#define CIOCCRYPT _IOWR('c', 104, struct crypt_op)
#define CIOCASYMFEAT _IOR('c', 106, __u32)
#define CIOCGSESSINFO _IOWR('c', 107, struct session_info_op)
#define CIOCAUTHCRYPT _IOWR('c', 109, struct crypt_auth_op)
#define CIOCCPHASH _IOW('c', 112, struct cphash_op)

/*
 * CRIOGET, which gives a program another descriptor, is left out: the kernel alone can do that, and
 * no device that is served by CUSE. Programs that obey this need none.
 */
#define CRIOGET_NOT_NEEDED 1

#endif

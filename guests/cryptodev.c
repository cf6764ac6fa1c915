/*
 * A program that uses /dev/crypto as programs for cryptodev-linux do.
 *
 *   cryptodev layout            sizes, offsets and numbers of the interface
 *   cryptodev answers DEVICE    published answers, and what has to be refused
 *   cryptodev loop DEVICE       requests until one fails: prints how many, and the error
 *   cryptodev threads DEVICE    requests of several threads and processes at once
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crypto/cryptodev.h"

static int device = -1;

static void fail(const char *what)
{
	printf("FAILED: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void expect(int is_so, const char *what)
{
	if (!is_so)
		fail(what);
}

/* Bytes of hexadecimal digits. */
static size_t bytes(const char *hex, __u8 *out)
{
	size_t len = strlen(hex) / 2;

	for (size_t at = 0; at < len; at++) {
		unsigned int byte;

		sscanf(hex + 2 * at, "%2x", &byte);
		out[at] = byte;
	}
	return len;
}

static __u32 session(__u32 cipher, const char *key, __u32 mac, const char *mac_key)
{
	__u8 keys[2][256];
	struct session_op op = {
		.cipher = cipher,
		.mac = mac,
		.keylen = bytes(key, keys[0]),
		.key = keys[0],
		.mackeylen = bytes(mac_key, keys[1]),
		.mackey = keys[1],
	};

	if (ioctl(device, CIOCGSESSION, &op))
		fail("CIOCGSESSION");
	return op.ses;
}

static void layout(void)
{
#define STRUCTURE(name) printf("struct %s %zu\n", #name, sizeof(struct name))
#define FIELD(name, field) \
	printf("%s.%s %zu %zu\n", #name, #field, offsetof(struct name, field), \
	       sizeof(((struct name *)0)->field))
#define NUMBER(name) printf("%s %lu\n", #name, (unsigned long)(name))
	STRUCTURE(session_op);
	FIELD(session_op, cipher);
	FIELD(session_op, mac);
	FIELD(session_op, keylen);
	FIELD(session_op, key);
	FIELD(session_op, mackeylen);
	FIELD(session_op, mackey);
	FIELD(session_op, ses);
	STRUCTURE(session_info_op);
	FIELD(session_info_op, ses);
	FIELD(session_info_op, cipher_info.cra_name);
	FIELD(session_info_op, cipher_info.cra_driver_name);
	FIELD(session_info_op, hash_info.cra_name);
	FIELD(session_info_op, hash_info.cra_driver_name);
	FIELD(session_info_op, alignmask);
	FIELD(session_info_op, flags);
	STRUCTURE(crypt_op);
	FIELD(crypt_op, ses);
	FIELD(crypt_op, op);
	FIELD(crypt_op, flags);
	FIELD(crypt_op, len);
	FIELD(crypt_op, src);
	FIELD(crypt_op, dst);
	FIELD(crypt_op, mac);
	FIELD(crypt_op, iv);
	STRUCTURE(crypt_auth_op);
	FIELD(crypt_auth_op, ses);
	FIELD(crypt_auth_op, op);
	FIELD(crypt_auth_op, flags);
	FIELD(crypt_auth_op, len);
	FIELD(crypt_auth_op, auth_len);
	FIELD(crypt_auth_op, auth_src);
	FIELD(crypt_auth_op, src);
	FIELD(crypt_auth_op, dst);
	FIELD(crypt_auth_op, tag);
	FIELD(crypt_auth_op, tag_len);
	FIELD(crypt_auth_op, iv);
	FIELD(crypt_auth_op, iv_len);
	NUMBER(CIOCGSESSION);
	NUMBER(CIOCFSESSION);
	NUMBER(CIOCCRYPT);
	NUMBER(CIOCASYMFEAT);
	NUMBER(CIOCGSESSINFO);
	NUMBER(CIOCAUTHCRYPT);
}

/* NIST SP 800-38A, appendices F.2.1 and F.5.1: the same plaintext. */
static const char key[] = "2b7e151628aed2a6abf7158809cf4f3c";
static const char plain[] =
	"6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
	"30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";
static const char cbc_iv[] = "000102030405060708090a0b0c0d0e0f";
static const char cbc[] =
	"7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2"
	"73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7";
static const char ctr_iv[] = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
static const char ctr[] =
	"874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff"
	"5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee";

static void cipher(__u32 number, const char *iv_hex, const char *expected_hex)
{
	__u8 data[64], iv[16], expected[64], original[64];
	__u32 ses = session(number, key, 0, "");
	struct session_info_op info = { .ses = ses };
	struct crypt_op op = {
		.ses = ses,
		.len = bytes(plain, data),
		.src = data,
		.dst = data,
		.iv = iv,
	};

	bytes(plain, original);
	bytes(iv_hex, iv);
	bytes(expected_hex, expected);
	expect(!ioctl(device, CIOCCRYPT, &op), "encryption");
	expect(!memcmp(data, expected, 64), "the published ciphertext");
	op.op = COP_DECRYPT;
	op.flags = COP_FLAG_WRITE_IV;
	expect(!ioctl(device, CIOCCRYPT, &op), "decryption");
	expect(!memcmp(data, original, 64), "the plaintext again");
	if (number == CRYPTO_AES_CBC)
		expect(!memcmp(iv, expected + 48, 16), "the IV for what follows");
	expect(!ioctl(device, CIOCGSESSINFO, &info), "CIOCGSESSINFO");
	printf("%s by %s\n", info.cipher_info.cra_name, info.cipher_info.cra_driver_name);
	expect(!ioctl(device, CIOCFSESSION, &ses), "CIOCFSESSION");
	expect(ioctl(device, CIOCCRYPT, &op) && errno == EINVAL, "a session that is closed");
}

/* RFC 4231, section 4.3. */
static void mac(void)
{
	__u8 message[] = "what do ya want for nothing?", digest[64], expected[32];
	struct crypt_op op = {
		.ses = session(0, "", CRYPTO_SHA2_256_HMAC, "4a656665"),
		.len = sizeof(message) - 1,
		.src = message,
		.mac = digest,
	};

	bytes("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", expected);
	expect(!ioctl(device, CIOCCRYPT, &op), "a MAC");
	expect(!memcmp(digest, expected, 32), "the published MAC");
}

/* The Galois/Counter Mode of Operation, test case 4. */
static void aead(void)
{
	__u8 data[128], original[64], aad[32], iv[12], expected[128];
	size_t len = bytes("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
			   "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39", original);
	struct crypt_auth_op op = {
		.ses = session(CRYPTO_AES_GCM, "feffe9928665731c6d6a8f9467308308", 0, ""),
		.len = len,
		.auth_len = bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2", aad),
		.auth_src = aad,
		.src = original,
		.dst = data,
		.iv = iv,
		.iv_len = bytes("cafebabefacedbaddecaf888", iv),
	};

	bytes("42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
	      "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091"
	      "5bc94fbc3221a5db94fae95ae7121a47", expected);
	expect(!ioctl(device, CIOCAUTHCRYPT, &op), "sealing");
	expect(op.len == len + 16 && op.tag_len == 16, "the length with the tag");
	expect(!memcmp(data, expected, len + 16), "the published ciphertext and tag");
	op.op = COP_DECRYPT;
	op.src = op.dst = data;
	expect(!ioctl(device, CIOCAUTHCRYPT, &op) && op.len == len, "opening");
	expect(!memcmp(data, original, len), "the plaintext again");
	expected[3] ^= 1;
	op.len = len + 16;
	op.src = expected;
	expect(ioctl(device, CIOCAUTHCRYPT, &op) && errno == EBADMSG, "a forgery is refused");
	expect(!memcmp(data, original, len), "a forgery writes nothing");
}

/* What no program should ask for. */
static void refusals(void)
{
	__u8 data[64] = { 0 }, keys[128] = { 0 };
	static __u8 large[1 << 20];
	struct session_op bad = { .cipher = CRYPTO_DES_CBC, .keylen = 8, .key = keys };
	struct crypt_op op = {
		.ses = session(CRYPTO_AES_CBC, key, 0, ""),
		.src = data,
		.dst = data,
		.iv = data,
		.len = 17,
	};
	int other = open("/proc/self/exe", O_RDONLY);

	expect(ioctl(device, CIOCGSESSION, &bad) && errno == EINVAL, "an unknown cipher");
	bad.cipher = CRYPTO_AES_CBC;
	expect(ioctl(device, CIOCGSESSION, &bad) && errno == EINVAL, "a key of a wrong length");
	bad.keylen = 16;
	bad.key = NULL;
	expect(ioctl(device, CIOCGSESSION, &bad) && errno == EFAULT, "a key nowhere");
	expect(ioctl(device, CIOCGSESSION, NULL) && errno == EFAULT, "a structure nowhere");
	expect(ioctl(device, CIOCCRYPT, &op) && errno == EINVAL, "a part of a block");
	op.len = 32;
	op.src = (__u8 *)8;
	expect(ioctl(device, CIOCCRYPT, &op) && errno == EFAULT, "an input nowhere");
	op.src = data;
	op.dst = (__u8 *)8;
	expect(ioctl(device, CIOCCRYPT, &op) && errno == EFAULT, "an output nowhere");
	op.src = op.dst = large;
	op.len = sizeof(large);
	expect(ioctl(device, CIOCCRYPT, &op) && errno == EMSGSIZE, "too many bytes");
	op.len = 120 << 10;
	expect(!ioctl(device, CIOCCRYPT, &op), "as many bytes as there can be");
	expect(ioctl(device, 0x1234, data) && errno == EINVAL, "an unknown request");
	expect(read(device, data, 1) < 0 && write(device, data, 1) < 0, "no reading, no writing");
	op.ses ^= 0x5555;
	op.len = 16;
	expect(ioctl(device, CIOCCRYPT, &op) && errno == EINVAL, "an unknown session");
	close(other);
}

/* Encrypts block after block; how many until it failed. */
static void *work(void *limit)
{
	long most = *(long *)limit, done = 0;
	__u8 data[64], iv[16], expected[64];
	struct crypt_op op = {
		.ses = session(CRYPTO_AES_CBC, key, 0, ""),
		.src = data,
		.dst = data,
		.iv = iv,
	};

	bytes(cbc, expected);
	for (; done < most; done++) {
		op.len = bytes(plain, data);
		bytes(cbc_iv, iv);
		if (ioctl(device, CIOCCRYPT, &op))
			break;
		expect(!memcmp(data, expected, 64), "the published ciphertext");
	}
	return (void *)done;
}

static void threads(void)
{
	long limit = 200;
	pthread_t all[8];
	int status;
	/* A child has the same open file, and may use it. */
	pid_t child = fork();

	for (int at = 0; at < 8; at++)
		pthread_create(&all[at], NULL, work, &limit);
	for (int at = 0; at < 8; at++) {
		void *done;

		pthread_join(all[at], &done);
		expect((long)done == limit, "all requests of a thread");
	}
	if (!child)
		exit(0);
	expect(waitpid(child, &status, 0) == child && !status, "the child");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "layout";
	long limit = 1L << 40, done;

	if (!strcmp(mode, "layout")) {
		layout();
		return 0;
	}
	device = open(argc > 2 ? argv[2] : "/dev/crypto", O_RDWR);
	if (device < 0)
		fail("the device cannot be opened");
	if (!strcmp(mode, "answers")) {
		cipher(CRYPTO_AES_CBC, cbc_iv, cbc);
		cipher(CRYPTO_AES_CTR, ctr_iv, ctr);
		mac();
		aead();
		refusals();
		puts("all answers are right");
	} else if (!strcmp(mode, "loop")) {
		done = (long)work(&limit);
		printf("%s after some requests\n", strerror(errno));
		return done == 0;
	} else if (!strcmp(mode, "threads")) {
		threads();
		puts("all threads are served");
	} else {
		fprintf(stderr, "there is no '%s'\n", mode);
		return 2;
	}
	return 0;
}

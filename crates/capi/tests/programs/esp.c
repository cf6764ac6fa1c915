/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Packets that an SA seals are taken apart by libcrypto after RFC 4106, and opened by another SA. */
#include <openssl/evp.h>

#include <cipherlane_esp.h>

#include "check.h"

#define PACKETS 70
#define ROOM 2048

static cipherlane_framework *framework;
static unsigned char buffers[PACKETS][ROOM], inner[PACKETS][1500], copy[ROOM];
static struct cipherlane_packet packets[PACKETS];
static unsigned char key[36];

static struct cipherlane_sa_parameters parameters(const char *transform, size_t key_len)
{
	struct cipherlane_sa_parameters parameters;

	memset(&parameters, 0, sizeof(parameters));
	parameters.size = sizeof(parameters);
	parameters.spi = 0x12345678;
	parameters.transform = transform;
	parameters.encryption_key = key;
	parameters.encryption_key_len = key_len;
	return parameters;
}

/* IPv4 packets of random lengths, of which tunnel mode looks at version and length. */
static void draw(size_t head)
{
	size_t i;

	for (i = 0; i < PACKETS; i++) {
		size_t len = 20 + drawn() % 1400;

		fill(inner[i], len);
		inner[i][0] = 0x45;
		inner[i][2] = (unsigned char)(len >> 8);
		inner[i][3] = (unsigned char)len;
		packets[i].buffer = buffers[i];
		packets[i].buffer_len = ROOM;
		packets[i].offset = head;
		packets[i].len = len;
		packets[i].next_header = 0;
		memcpy(buffers[i] + head, inner[i], len);
	}
}

/* One packet after RFC 4106 and RFC 4303 with extended sequence numbers. */
static void by_peer(const unsigned char *packet, size_t len, uint64_t sequence,
		    const unsigned char *plain, size_t plain_len)
{
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
	unsigned char nonce[12], aad[12], opened[ROOM];
	size_t sealed = len - 8 - 8 - 16, pad, i;
	int n;

	memcpy(nonce, key + 16, 4);
	memcpy(nonce + 4, packet + 8, 8);
	memcpy(aad, packet, 4);
	for (i = 0; i < 8; i++)
		aad[4 + i] = (unsigned char)(sequence >> (56 - 8 * i));
	CHECK(!memcmp(packet, "\x12\x34\x56\x78", 4));
	CHECK(!memcmp(packet + 4, aad + 8, 4));
	CHECK(EVP_DecryptInit_ex(context, EVP_aes_128_gcm(), NULL, key, nonce));
	CHECK(EVP_DecryptUpdate(context, NULL, &n, aad, sizeof(aad)));
	CHECK(EVP_DecryptUpdate(context, opened, &n, packet + 16, (int)sealed));
	CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, (void *)(packet + len - 16)));
	CHECK(EVP_DecryptFinal_ex(context, opened + n, &n));
	pad = opened[sealed - 2];
	CHECK(opened[sealed - 1] == 4 && sealed == plain_len + pad + 2 && sealed % 4 == 0);
	for (i = 0; i < pad; i++)
		CHECK(opened[plain_len + i] == i + 1);
	CHECK(!memcmp(opened, plain, plain_len));
	EVP_CIPHER_CTX_free(context);
}

static void both_ends(const char *transform, size_t key_len, int is_gcm)
{
	struct cipherlane_sa_parameters given = parameters(transform, key_len);
	struct cipherlane_esp_statistics statistics;
	cipherlane_outbound_sa *outbound;
	cipherlane_inbound_sa *inbound;
	uint64_t sequence = 1u << 31;
	size_t done, i, turn;

	given.last_sequence = sequence;
	OK(cipherlane_outbound_sa_new(framework, &given, &outbound));
	OK(cipherlane_inbound_sa_new(framework, &given, &inbound));
	for (turn = 0; turn < 20; turn++) {
		size_t count = 1 + drawn() % PACKETS;

		draw(cipherlane_outbound_sa_head_room(outbound));
		OK(cipherlane_outbound_sa_seal(outbound, packets, count, &done));
		CHECK(done == count);
		for (i = 0; i < count; i++) {
			CHECK(packets[i].verdict == CIPHERLANE_ESP_SEALED);
			CHECK(packets[i].sequence == ++sequence && packets[i].offset == 0);
			if (is_gcm)
				by_peer(buffers[i], packets[i].len, sequence, inner[i],
					inner[i][2] << 8 | inner[i][3]);
		}
		/* One is kept for a replay, one is changed. */
		memcpy(copy, buffers[0], ROOM);
		struct cipherlane_packet replayed = packets[0];
		if (count > 1)
			buffers[count - 1][packets[count - 1].len - 1] ^= 1;
		OK(cipherlane_inbound_sa_open(inbound, packets, count, &done));
		CHECK(done == count - (count > 1));
		for (i = 0; i < done; i++) {
			CHECK(packets[i].verdict == CIPHERLANE_ESP_ACCEPTED);
			CHECK(packets[i].next_header == 4);
			CHECK(packets[i].len == (size_t)(inner[i][2] << 8 | inner[i][3]));
			CHECK(!memcmp(buffers[i] + packets[i].offset, inner[i], packets[i].len));
		}
		if (count > 1)
			CHECK(!strcmp(cipherlane_esp_verdict_name(packets[count - 1].verdict),
				      "integrity_failures"));
		replayed.buffer = copy;
		OK(cipherlane_inbound_sa_open(inbound, &replayed, 1, &done));
		CHECK(done == 0);
		CHECK(!strcmp(cipherlane_esp_verdict_name(replayed.verdict), "replayed"));
	}
	OK(cipherlane_outbound_sa_statistics(outbound, &statistics));
	CHECK(statistics.packets == sequence - (1u << 31) && statistics.refused == 0);
	OK(cipherlane_inbound_sa_statistics(inbound, &statistics));
	CHECK(statistics.packets + statistics.refused == sequence - (1u << 31) + 20);
	cipherlane_outbound_sa_free(outbound);
	cipherlane_inbound_sa_free(inbound);
}

static void mistakes(void)
{
	struct cipherlane_sa_parameters given = parameters("aes-gcm-16", 20);
	cipherlane_outbound_sa *outbound;
	cipherlane_inbound_sa *inbound;
	size_t done = 9;

	REFUSED(cipherlane_outbound_sa_new(framework, NULL, &outbound), CIPHERLANE_INVALID,
		"parameters is NULL");
	REFUSED(cipherlane_outbound_sa_new(NULL, &given, &outbound), CIPHERLANE_INVALID,
		"framework is NULL");
	given.size = 4;
	REFUSED(cipherlane_outbound_sa_new(framework, &given, &outbound), CIPHERLANE_INVALID,
		"sizeof(struct cipherlane_sa_parameters)");
	given = parameters("rot13", 20);
	REFUSED(cipherlane_outbound_sa_new(framework, &given, &outbound), CIPHERLANE_INVALID,
		"no transform 'rot13'");
	given = parameters("aes-gcm-16", 21);
	REFUSED(cipherlane_outbound_sa_new(framework, &given, &outbound), CIPHERLANE_INVALID,
		"an encryption key of 21 bytes");
	given = parameters("aes-cbc-hmac-sha256", 16);
	REFUSED(cipherlane_inbound_sa_new(framework, &given, &inbound), CIPHERLANE_INVALID,
		"an integrity key of 0 bytes");
	given = parameters("aes-gcm-16", 20);
	given.spi = 255;
	REFUSED(cipherlane_outbound_sa_new(framework, &given, &outbound), CIPHERLANE_INVALID,
		"SPI 255");
	CHECK(outbound == NULL);
	given.spi = 256;
	given.replay_window = 7;
	REFUSED(cipherlane_inbound_sa_new(framework, &given, &inbound), CIPHERLANE_INVALID,
		"a replay window of 7");
	given.last_sequence = UINT64_MAX;
	REFUSED(cipherlane_outbound_sa_new(framework, &given, &outbound), CIPHERLANE_INVALID,
		"no sequence number is left");
	given = parameters("aes-gcm-16", 20);
	OK(cipherlane_outbound_sa_new(framework, &given, &outbound));
	CHECK(cipherlane_outbound_sa_tail_room(outbound) >= 16);
	CHECK(cipherlane_outbound_sa_tail_room(NULL) == 0);
	draw(2);
	OK(cipherlane_outbound_sa_seal(outbound, packets, 1, &done));
	CHECK(done == 0 && !strcmp(cipherlane_esp_verdict_name(packets[0].verdict), "no_room"));
	CHECK(!memcmp(buffers[0] + 2, inner[0], packets[0].len));
	OK(cipherlane_outbound_sa_seal(outbound, NULL, 0, NULL));
	REFUSED(cipherlane_outbound_sa_seal(outbound, NULL, 1, NULL), CIPHERLANE_INVALID,
		"packets is NULL");
	packets[0].len = SIZE_MAX;
	REFUSED(cipherlane_outbound_sa_seal(outbound, packets, 1, NULL), CIPHERLANE_INVALID,
		"does not lie in its buffer");
	packets[0].len = ROOM;
	REFUSED(cipherlane_outbound_sa_seal(outbound, packets, 1, NULL), CIPHERLANE_INVALID,
		"does not lie in its buffer");
	packets[0].buffer = NULL;
	REFUSED(cipherlane_outbound_sa_seal(outbound, packets, 1, NULL), CIPHERLANE_INVALID,
		"buffer is NULL");
	REFUSED(cipherlane_outbound_sa_statistics(outbound, NULL), CIPHERLANE_INVALID,
		"statistics is NULL");
	CHECK(cipherlane_esp_verdict_name(-1) == NULL);
	CHECK(cipherlane_esp_verdict_name(15) == NULL);
	CHECK(cipherlane_esp_verdict_name(1000) == NULL);
	cipherlane_outbound_sa_free(outbound);
	cipherlane_outbound_sa_free(NULL);
	cipherlane_inbound_sa_free(NULL);
}

int main(void)
{
	fill(key, sizeof(key));
	OK(cipherlane_framework_new(&framework));
	both_ends("aes-gcm-16", 20, 1);
	both_ends("chacha20-poly1305", 36, 0);
	both_ends("gost-4m-imit-z", 36, 0);
	mistakes();
	cipherlane_framework_free(framework);
	return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random messages by this library, by each way of calling it, and by libcrypto: the same bytes. */
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "check.h"

#define MOST 3000
#define BATCH 40

struct way {
	const char *name;
	const EVP_CIPHER *(*cipher)(void);
	size_t key_len;
	size_t iv_len;
	size_t block;
	int aead;
};

static const struct way WAYS[] = {
	{ "gcm(aes)", EVP_aes_128_gcm, 16, 12, 1, 1 },
	{ "gcm(aes)", EVP_aes_256_gcm, 32, 12, 1, 1 },
	{ "rfc7539(chacha20,poly1305)", EVP_chacha20_poly1305, 32, 12, 1, 1 },
	{ "ctr(aes)", EVP_aes_192_ctr, 24, 16, 1, 0 },
	{ "cbc(aes)", EVP_aes_128_cbc, 16, 16, 16, 0 },
	{ "xts(aes)", EVP_aes_256_xts, 64, 16, 16, 0 },
};

struct message {
	unsigned char key[64], iv[16], aad[64], plain[MOST], sealed[MOST], tag[64];
	size_t aad_len, len;
};

/* What libcrypto makes of it. */
static void by_peer(const struct way *way, struct message *message)
{
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
	int n;

	CHECK(context != NULL);
	CHECK(EVP_EncryptInit_ex(context, way->cipher(), NULL, message->key, message->iv));
	EVP_CIPHER_CTX_set_padding(context, 0);
	if (message->aad_len)
		CHECK(EVP_EncryptUpdate(context, NULL, &n, message->aad, (int)message->aad_len));
	if (message->len)
		CHECK(EVP_EncryptUpdate(context, message->sealed, &n, message->plain,
					(int)message->len));
	CHECK(EVP_EncryptFinal_ex(context, message->sealed + message->len, &n));
	if (way->aead)
		CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, message->tag));
	EVP_CIPHER_CTX_free(context);
}

static void draw(const struct way *way, struct message *message, const unsigned char *key)
{
	memcpy(message->key, key, way->key_len);
	fill(message->iv, sizeof(message->iv));
	fill(message->aad, sizeof(message->aad));
	message->aad_len = way->aead ? drawn() % sizeof(message->aad) : 0;
	message->len = drawn() % (MOST / way->block) * way->block;
	if (!way->aead && message->len < way->block)
		message->len = way->block;
	fill(message->plain, message->len);
	by_peer(way, message);
}

static void one_by_one(const struct way *way, const cipherlane_session *session,
		       const struct message *message)
{
	unsigned char data[MOST], tag[16];

	memcpy(data, message->plain, message->len);
	if (!way->aead) {
		OK(cipherlane_encrypt(session, message->iv, way->iv_len, data, message->len));
		CHECK(!memcmp(data, message->sealed, message->len));
		OK(cipherlane_decrypt(session, message->iv, way->iv_len, data, message->len));
		CHECK(!memcmp(data, message->plain, message->len));
		return;
	}
	OK(cipherlane_seal(session, message->iv, way->iv_len, message->aad, message->aad_len, data,
			   message->len, tag, 16));
	CHECK(!memcmp(data, message->sealed, message->len));
	CHECK(!memcmp(tag, message->tag, 16));
	OK(cipherlane_open(session, message->iv, way->iv_len, message->aad, message->aad_len, data,
			   message->len, tag, 16));
	CHECK(!memcmp(data, message->plain, message->len));
	tag[drawn() % 16] ^= 1 << drawn() % 8;
	REFUSED(cipherlane_open(session, message->iv, way->iv_len, message->aad, message->aad_len,
				data, message->len, tag, 16),
		CIPHERLANE_BAD_TAG, "authentication failed");
}

static struct message messages[BATCH];
static unsigned char outputs[BATCH][MOST], tags[BATCH][16];
static struct cipherlane_request requests[BATCH];

/* Lays a batch out, half of it in place, in random order of both. */
static void lay_out(const struct way *way, size_t count)
{
	size_t i;

	memset(requests, 0, sizeof(requests));
	for (i = 0; i < count; i++) {
		const struct message *message = &messages[i];
		int in_place = drawn() & 1;

		memset(outputs[i], 0xa5, MOST);
		if (in_place)
			memcpy(outputs[i], message->plain, message->len);
		requests[i].iv = message->iv;
		requests[i].iv_len = way->iv_len;
		requests[i].aad = message->aad;
		requests[i].aad_len = message->aad_len;
		requests[i].input = in_place ? outputs[i] : message->plain;
		requests[i].output = outputs[i];
		requests[i].len = message->len;
		requests[i].tag = tags[i];
		requests[i].tag_len = way->aead ? 16 : 0;
		requests[i].status = -1;
	}
}

static void compare(const struct way *way, size_t first, size_t count)
{
	size_t i;

	for (i = first; i < first + count; i++) {
		CHECK(requests[i].status == CIPHERLANE_OK);
		CHECK(!memcmp(outputs[i], messages[i].sealed, messages[i].len));
		CHECK(!way->aead || !memcmp(tags[i], messages[i].tag, 16));
	}
}

/* All of them are taken in the end, and each is fetched by asking or by waiting. */
static void submitted(const struct way *way, const cipherlane_session *session, size_t count)
{
	size_t first = 0, taken;

	while (first < count) {
		cipherlane_ticket *ticket;
		int answer;

		OK(cipherlane_submit(session, CIPHERLANE_ENCRYPT, requests + first, count - first,
				     &taken, &ticket));
		CHECK((taken > 0) == (ticket != NULL));
		if (ticket == NULL)
			continue;
		if (drawn() & 1) {
			do
				answer = cipherlane_ticket_poll(&ticket);
			while (answer == CIPHERLANE_PENDING);
			CHECK(answer == CIPHERLANE_OK);
		} else {
			OK(cipherlane_ticket_wait(&ticket));
		}
		CHECK(ticket == NULL);
		compare(way, first, taken);
		first += taken;
	}
}

static void batches(const struct way *way, const cipherlane_session *session)
{
	size_t count = 1 + drawn() % BATCH, i;
	size_t wrong;

	for (i = 0; i < count; i++)
		draw(way, &messages[i], messages[0].key);
	lay_out(way, count);
	submitted(way, session, count);
	lay_out(way, count);
	OK(cipherlane_process(session, CIPHERLANE_ENCRYPT, requests, count));
	compare(way, 0, count);
	for (i = 0; i < count; i++)
		requests[i].input = requests[i].output;
	wrong = drawn() % count;
	if (way->aead) {
		tags[wrong][0] ^= 1;
		REFUSED(cipherlane_process(session, CIPHERLANE_DECRYPT, requests, count),
			CIPHERLANE_BAD_TAG, "authentication failed");
	} else {
		OK(cipherlane_process(session, CIPHERLANE_DECRYPT, requests, count));
	}
	for (i = 0; i < count; i++) {
		if (way->aead && i == wrong) {
			CHECK(requests[i].status == CIPHERLANE_BAD_TAG);
			continue;
		}
		CHECK(requests[i].status == CIPHERLANE_OK);
		CHECK(!memcmp(outputs[i], messages[i].plain, messages[i].len));
	}
}

static void macs(const cipherlane_framework *framework)
{
	unsigned char key[40], message[MOST], tag[32], peers[32];
	cipherlane_session *session;
	unsigned int peers_len;
	int turn;

	fill(key, sizeof(key));
	OK(cipherlane_session_open(framework, "hmac(sha256)", key, sizeof(key), NULL, &session));
	for (turn = 0; turn < 200; turn++) {
		size_t len = drawn() % MOST;
		struct cipherlane_request request = { 0 };

		fill(message, len);
		CHECK(HMAC(EVP_sha256(), key, sizeof(key), message, len, peers, &peers_len));
		OK(cipherlane_mac(session, message, len, tag, sizeof(tag)));
		CHECK(!memcmp(tag, peers, sizeof(tag)));
		OK(cipherlane_verify(session, message, len, tag, sizeof(tag)));
		memset(tag, 0, sizeof(tag));
		request.input = message;
		request.len = len;
		request.tag = tag;
		request.tag_len = sizeof(tag);
		OK(cipherlane_process(session, CIPHERLANE_ENCRYPT, &request, 1));
		CHECK(!memcmp(tag, peers, sizeof(tag)));
		tag[drawn() % 32] ^= 0x40;
		CHECK(cipherlane_verify(session, message, len, tag, 32) == CIPHERLANE_BAD_TAG);
	}
	cipherlane_session_free(session);
}

int main(void)
{
	cipherlane_framework *framework;
	size_t i;
	int turn;

	OK(cipherlane_framework_new(&framework));
	for (i = 0; i < sizeof(WAYS) / sizeof(*WAYS); i++) {
		const struct way *way = &WAYS[i];
		cipherlane_session *session;
		unsigned char key[64];

		fill(key, sizeof(key));
		OK(cipherlane_session_open(framework, way->name, key, way->key_len, NULL, &session));
		for (turn = 0; turn < 100; turn++) {
			draw(way, &messages[0], key);
			one_by_one(way, session, &messages[0]);
		}
		for (turn = 0; turn < 20; turn++)
			batches(way, session);
		cipherlane_session_free(session);
	}
	macs(framework);
	cipherlane_framework_free(framework);
	return 0;
}

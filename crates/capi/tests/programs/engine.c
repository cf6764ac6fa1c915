/* A provider for OpenSSL 3 whose AES-128-CBC is done by whichever driver the settings name
 * (CIPHERLANE_FORCE): what an engine is to a program that encrypts packet by packet. */

#include <cipherlane.h>

#include <openssl/core.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16, KEY = 16 };

struct cipher {
	cipherlane_session *session;
	unsigned char iv[BLOCK];
	/* What is no whole block yet; when decrypting, also the block that may be the last. */
	unsigned char held[BLOCK];
	size_t held_len;
	int encrypts;
	unsigned int pads;
};

static cipherlane_framework *framework;

static void load(void) {
	if (cipherlane_framework_load(NULL, &framework) != CIPHERLANE_OK)
		fprintf(stderr, "engine: %s\n", cipherlane_error_text());
}

static void *new_context(void *provider) {
	struct cipher *cipher = calloc(1, sizeof *cipher);
	(void)provider;
	if (cipher != NULL)
		cipher->pads = 1;
	return cipher;
}

static void free_context(void *context) {
	struct cipher *cipher = context;
	cipherlane_session_free(cipher->session);
	free(cipher);
}

static int set_context(void *context, const OSSL_PARAM params[]) {
	struct cipher *cipher = context;
	const OSSL_PARAM *pads = OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_PADDING);
	return pads == NULL || OSSL_PARAM_get_uint(pads, &cipher->pads);
}

static int begin(struct cipher *cipher, int encrypts, const unsigned char *key, size_t key_len,
		 const unsigned char *iv, size_t iv_len, const OSSL_PARAM params[]) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, load);
	cipher->encrypts = encrypts;
	cipher->held_len = 0;
	if (iv != NULL) {
		if (iv_len != BLOCK)
			return 0;
		memcpy(cipher->iv, iv, BLOCK);
	}
	if (key != NULL) {
		cipherlane_session_free(cipher->session);
		cipher->session = NULL;
		if (framework == NULL || cipherlane_session_open(framework, "cbc(aes)", key, key_len, NULL,
								 &cipher->session) != CIPHERLANE_OK) {
			fprintf(stderr, "engine: %s\n", cipherlane_error_text());
			return 0;
		}
	}
	return set_context(cipher, params);
}

static int begin_encrypting(void *context, const unsigned char *key, size_t key_len,
			    const unsigned char *iv, size_t iv_len, const OSSL_PARAM params[]) {
	return begin(context, 1, key, key_len, iv, iv_len, params);
}

static int begin_decrypting(void *context, const unsigned char *key, size_t key_len,
			    const unsigned char *iv, size_t iv_len, const OSSL_PARAM params[]) {
	return begin(context, 0, key, key_len, iv, iv_len, params);
}

/* Whole blocks in place; the next ones follow them. */
static int crypt_blocks(struct cipher *cipher, unsigned char *data, size_t len) {
	unsigned char next[BLOCK];
	int status;
	if (len == 0)
		return 1;
	if (!cipher->encrypts)
		memcpy(next, data + len - BLOCK, BLOCK);
	status = cipher->encrypts
			 ? cipherlane_encrypt(cipher->session, cipher->iv, BLOCK, data, len)
			 : cipherlane_decrypt(cipher->session, cipher->iv, BLOCK, data, len);
	if (status != CIPHERLANE_OK) {
		fprintf(stderr, "engine: %s\n", cipherlane_error_text());
		return 0;
	}
	memcpy(cipher->iv, cipher->encrypts ? data + len - BLOCK : next, BLOCK);
	return 1;
}

static int update(void *context, unsigned char *out, size_t *out_len, size_t out_size,
		  const unsigned char *in, size_t in_len) {
	struct cipher *cipher = context;
	size_t all = cipher->held_len + in_len, whole = all / BLOCK * BLOCK;
	size_t before = cipher->held_len, rest;
	unsigned char tail[BLOCK];
	if (!cipher->encrypts && cipher->pads && whole == all && whole > 0)
		whole -= BLOCK;
	if (out_size < whole)
		return 0;
	*out_len = whole;
	if (whole == 0) {
		memcpy(cipher->held + before, in, in_len);
		cipher->held_len = all;
		return 1;
	}
	/* The output may be where the input is. */
	rest = all - whole;
	memcpy(tail, in + in_len - rest, rest);
	memmove(out + before, in, whole - before);
	memcpy(out, cipher->held, before);
	memcpy(cipher->held, tail, rest);
	cipher->held_len = rest;
	return crypt_blocks(cipher, out, whole);
}

static int finish(void *context, unsigned char *out, size_t *out_len, size_t out_size) {
	struct cipher *cipher = context;
	size_t padding = BLOCK - cipher->held_len;
	*out_len = 0;
	if (!cipher->pads)
		return cipher->held_len == 0;
	if (cipher->encrypts) {
		memset(cipher->held + cipher->held_len, (int)padding, padding);
	} else if (cipher->held_len != BLOCK) {
		return 0;
	}
	if (!crypt_blocks(cipher, cipher->held, BLOCK))
		return 0;
	*out_len = BLOCK;
	if (!cipher->encrypts) {
		padding = cipher->held[BLOCK - 1];
		if (padding == 0 || padding > BLOCK)
			return 0;
		*out_len = BLOCK - padding;
	}
	cipher->held_len = 0;
	if (out_size < *out_len)
		return 0;
	memcpy(out, cipher->held, *out_len);
	return 1;
}

static int tell(OSSL_PARAM params[], const char *name, size_t value) {
	OSSL_PARAM *param = OSSL_PARAM_locate(params, name);
	return param == NULL || OSSL_PARAM_set_size_t(param, value);
}

static int cipher_params(OSSL_PARAM params[]) {
	OSSL_PARAM *mode = OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_MODE);
	return (mode == NULL || OSSL_PARAM_set_uint(mode, EVP_CIPH_CBC_MODE)) &&
	       tell(params, OSSL_CIPHER_PARAM_KEYLEN, KEY) &&
	       tell(params, OSSL_CIPHER_PARAM_IVLEN, BLOCK) &&
	       tell(params, OSSL_CIPHER_PARAM_BLOCK_SIZE, BLOCK);
}

static int context_params(void *context, OSSL_PARAM params[]) {
	(void)context;
	return tell(params, OSSL_CIPHER_PARAM_KEYLEN, KEY) &&
	       tell(params, OSSL_CIPHER_PARAM_IVLEN, BLOCK);
}

static const OSSL_DISPATCH cipher_functions[] = {
	{OSSL_FUNC_CIPHER_NEWCTX, (void (*)(void))new_context},
	{OSSL_FUNC_CIPHER_FREECTX, (void (*)(void))free_context},
	{OSSL_FUNC_CIPHER_ENCRYPT_INIT, (void (*)(void))begin_encrypting},
	{OSSL_FUNC_CIPHER_DECRYPT_INIT, (void (*)(void))begin_decrypting},
	{OSSL_FUNC_CIPHER_UPDATE, (void (*)(void))update},
	{OSSL_FUNC_CIPHER_FINAL, (void (*)(void))finish},
	{OSSL_FUNC_CIPHER_GET_PARAMS, (void (*)(void))cipher_params},
	{OSSL_FUNC_CIPHER_GET_CTX_PARAMS, (void (*)(void))context_params},
	{OSSL_FUNC_CIPHER_SET_CTX_PARAMS, (void (*)(void))set_context},
	{0, NULL},
};

static const OSSL_ALGORITHM ciphers[] = {
	{"AES-128-CBC:AES128:2.16.840.1.101.3.4.1.2", "provider=engine", cipher_functions, NULL},
	{NULL, NULL, NULL, NULL},
};

static const OSSL_ALGORITHM *query(void *provider, int operation, int *no_cache) {
	(void)provider;
	*no_cache = 0;
	return operation == OSSL_OP_CIPHER ? ciphers : NULL;
}

static const OSSL_DISPATCH provider_functions[] = {
	{OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))query},
	{0, NULL},
};

int OSSL_provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *core,
		       const OSSL_DISPATCH **functions, void **context);

int OSSL_provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *core,
		       const OSSL_DISPATCH **functions, void **context) {
	(void)core;
	*functions = provider_functions;
	*context = (void *)(size_t)handle;
	return 1;
}

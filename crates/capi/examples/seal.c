/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Seals a message, opens it again, and tells who did it. Link with -lcipherlane. */
#include <stdio.h>

#include <cipherlane.h>

static int failed(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, cipherlane_error_text());
	return 1;
}

int main(void)
{
	const unsigned char key[16] = { 7 }; /* a real one comes from getrandom(2) */
	const unsigned char fixed[4] = { 0 };
	unsigned char message[] = "attack at dawn", nonce[12], tag[16];
	cipherlane_framework *framework;
	cipherlane_session *session;
	cipherlane_nonces *nonces;
	char why[500];

	if (cipherlane_framework_new(&framework))
		return failed("framework");
	/* One key, any number of threads. */
	if (cipherlane_session_open(framework, "gcm(aes)", key, sizeof(key), NULL, &session))
		return failed("session");
	if (cipherlane_nonces_new(fixed, 0, &nonces) || cipherlane_nonces_next(nonces, nonce))
		return failed("nonce");
	if (cipherlane_seal(session, nonce, sizeof(nonce), "header", 6, message, sizeof(message),
			    tag, sizeof(tag)))
		return failed("seal");
	if (cipherlane_open(session, nonce, sizeof(nonce), "header", 6, message, sizeof(message),
			    tag, sizeof(tag)))
		return failed("open");
	if (cipherlane_why(framework, "gcm(aes)", sizeof(message), why, sizeof(why), NULL))
		return failed("why");
	printf("%s\n%s\n", (const char *)message, why);
	cipherlane_nonces_free(nonces);
	cipherlane_session_free(session);
	cipherlane_framework_free(framework);
	return 0;
}

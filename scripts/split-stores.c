/* Messages of most ciphers through libcrypto, for split-stores, which reads a trace of the loads and stores.
   A store to one of the marks says that the next message of that number begins. */
#define _GNU_SOURCE
#include <link.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char *const CIPHERS[] = {"AES-128-ECB", "AES-128-CBC", "AES-128-CTR", "AES-128-XTS", "AES-128-GCM", "ChaCha20-Poly1305"};
static const int LENGTHS[] = {16, 64, 100, 272};
enum { CIPHER = sizeof CIPHERS / sizeof *CIPHERS, LENGTH = sizeof LENGTHS / sizeof *LENGTHS };
static char *const MARKS = (char *)0x700000000000;

/* Where the code of the provider is. */
static int found(struct dl_phdr_info *library, size_t size, void *name) {
    (void)size;
    for (int i = 0; i < library->dlpi_phnum && strcmp(library->dlpi_name, name) == 0; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_X)
            printf("%lx %lx %lx\n", (long)library->dlpi_addr, (long)part->p_vaddr, (long)part->p_memsz);
    }
    return 0;
}

static void need(int done) {
    if (!done) {
        fputs("a call of libcrypto failed\n", stdout);
        exit(1);
    }
}

static void message(EVP_CIPHER_CTX *context, int tagged, int encrypt, int len, unsigned char *data) {
    unsigned char iv[16] = {1}, tag[16] = {0};
    int done;
    need(EVP_CipherInit_ex2(context, NULL, NULL, iv, encrypt, NULL));
    if (tagged)
        need(EVP_CipherUpdate(context, NULL, &done, data, 13));
    need(EVP_CipherUpdate(context, data, &done, data, len));
    if (tagged && !encrypt)
        need(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, tag));
    /* Of whole blocks the end may be refused, and that tag is no message's. */
    (void)EVP_CipherFinal_ex(context, data + len, &done);
    if (tagged && encrypt)
        need(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag));
}

int main(int count, char **words) {
    need(count == 3);
    need(mmap(MARKS, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MARKS);
    unsigned char key[64], data[512] = {0};
    for (int i = 0; i < 64; i++)
        key[i] = i;
    for (int c = 0; c < CIPHER; c++) {
        EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, CIPHERS[c], NULL);
        need(cipher != NULL);
        if (strcmp(OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(cipher)), "cipherlane") != 0) {
            printf("%s is not the provider's: was it loaded?\n", CIPHERS[c]);
            return 1;
        }
        if (c == 0)
            dl_iterate_phdr(found, words[1]);
        for (int n = 0; n < 2 * LENGTH; n++) {
            int encrypt = n % 2, len = LENGTHS[n / 2], tagged = EVP_CIPHER_get_flags(cipher) & EVP_CIPH_FLAG_AEAD_CIPHER;
            EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
            need(EVP_CipherInit_ex2(context, cipher, key, NULL, encrypt, NULL));
            EVP_CIPHER_CTX_set_padding(context, 0);
            printf("%s, %d bytes, %s\n", CIPHERS[c], len, encrypt ? "encrypted" : "decrypted");
            for (int i = 0; i < atoi(words[2]); i++) {
                *(volatile char *)(MARKS + c * 2 * LENGTH + n) = 1;
                message(context, tagged != 0, encrypt, len, data);
            }
            EVP_CIPHER_CTX_free(context);
        }
        EVP_CIPHER_free(cipher);
    }
    return 0;
}

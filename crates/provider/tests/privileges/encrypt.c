/* A program that may be setuid: it loads the provider named by its argument and encrypts. */
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    if (count != 2)
        return 2;
    OSSL_PROVIDER *provider = OSSL_PROVIDER_load(NULL, arguments[1]);
    if (provider == NULL)
        return 3;
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, "AES-128-CTR", NULL);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    unsigned char block[16] = {0}, out[16];
    int len = 0;
    if (cipher == NULL || !EVP_EncryptInit_ex2(context, cipher, block, block, NULL)
        || !EVP_EncryptUpdate(context, out, &len, block, sizeof block) || len != sizeof block)
        return 4;
    EVP_CIPHER_CTX_free(context);
    EVP_CIPHER_free(cipher);
    OSSL_PROVIDER_unload(provider);
    printf("secure %lu uid %u euid %u gid %u egid %u first byte %02x\n", getauxval(AT_SECURE),
        getuid(), geteuid(), getgid(), getegid(), out[0]);
    return 0;
}

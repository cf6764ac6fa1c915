"""What the package cryptography makes of what is wrong: it tells by OpenSSL's error queue."""
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

KEY = bytes(range(32))


def told(name, work):
    try:
        print(name, work())
    except Exception as error:
        print(name, type(error).__name__, *error.args)


def streamed(context, data):
    return context.update(data) + context.finalize()


told("CBC in part", lambda: streamed(Cipher(algorithms.AES(KEY), modes.CBC(KEY[:16])).encryptor(), b"abc"))
told("ECB in part", lambda: streamed(Cipher(algorithms.AES(KEY), modes.ECB()).decryptor(), b"abc"))
told("XTS, a short unit", lambda: streamed(Cipher(algorithms.AES(KEY), modes.XTS(KEY[:16])).encryptor(), b"abc"))
told("XTS, equal halves", lambda: streamed(Cipher(algorithms.AES(b"k" * 32), modes.XTS(KEY[:16])).encryptor(), KEY))
told("GCM forged", lambda: streamed(Cipher(algorithms.AES(KEY), modes.GCM(KEY[:12], KEY[:16])).decryptor(), b"abc"))
told("GCM without data", lambda: streamed(Cipher(algorithms.AES(KEY), modes.GCM(KEY[:12], KEY[:16])).decryptor(), b""))
told("AESGCM forged", lambda: AESGCM(KEY).decrypt(KEY[:12], KEY, b"aad"))
told("AESGCM, a long nonce", lambda: AESGCM(KEY).decrypt(KEY, KEY, None))
told("AESGCM, no tag", lambda: AESGCM(KEY).decrypt(KEY[:12], b"short", None))
told("ChaCha20Poly1305 forged", lambda: ChaCha20Poly1305(KEY).decrypt(KEY[:12], KEY, b"aad"))

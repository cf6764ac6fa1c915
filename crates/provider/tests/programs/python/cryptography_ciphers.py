"""What the package cryptography makes of fixed data by every cipher: a line each.

Each line has the cipher, the bytes that went in, and SHA-256 of what came out, tag included.
Everything is decrypted again, and altered tags are refused.
"""

import hashlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

SIZES = [0, 1, 15, 16, 17, 63, 64, 255, 1024, 1400, 4096, 16384, 100_003]


def data(size, seed):
    return bytes((i * 131 + i // 251 + seed) % 256 for i in range(size))


def streamed(context, text):
    """In pieces that are no whole blocks, each longer than the one before."""
    out = bytearray()
    piece = 1
    while text:
        out += context.update(text[:piece])
        text = text[piece:]
        piece = piece * 3 + 2
    return bytes(out) + context.finalize()


def tell(name, text, out):
    print(name, len(text), hashlib.sha256(out).hexdigest())


def stream_modes():
    for bits in 128, 192, 256:
        key = data(bits // 8, 3)
        for size in SIZES:
            for name, mode in ("CTR", modes.CTR), ("CBC", modes.CBC):
                text = data(size // 16 * 16 if name == "CBC" else size, bits)
                made = Cipher(algorithms.AES(key), mode(data(16, 250)))
                out = streamed(made.encryptor(), text)
                assert streamed(made.decryptor(), out) == text
                tell(f"AES-{bits}-{name}", text, out)


def xts():
    for bits in 128, 256:
        key = data(bits // 4, 3)
        for size in SIZES:
            if size < 16:
                continue
            text = data(size, bits)
            made = Cipher(algorithms.AES(key), modes.XTS(data(16, 9)))
            encryptor, decryptor = made.encryptor(), made.decryptor()
            out = encryptor.update(text) + encryptor.finalize()
            assert decryptor.update(out) + decryptor.finalize() == text
            tell(f"AES-{bits}-XTS", text, out)


def gcm():
    for bits in 128, 192, 256:
        key = data(bits // 8, 3)
        for size in SIZES:
            # A nonce of 12 bytes, and one that has to be hashed.
            for nonce in data(12, 40), data(60, 41):
                text, additional = data(size, bits), data(size // 3, 5)
                made = Cipher(algorithms.AES(key), modes.GCM(nonce))
                encryptor = made.encryptor()
                encryptor.authenticate_additional_data(additional[:7])
                encryptor.authenticate_additional_data(additional[7:])
                out = streamed(encryptor, text)
                # The tag is given before the data once, and after them once.
                early = Cipher(algorithms.AES(key), modes.GCM(nonce, encryptor.tag)).decryptor()
                early.authenticate_additional_data(additional)
                assert streamed(early, out) == text
                late = made.decryptor()
                late.authenticate_additional_data(additional)
                again = late.update(out)
                assert again + late.finalize_with_tag(encryptor.tag) == text
                tell(f"AES-{bits}-GCM", text, out + encryptor.tag)


def whole(name, made):
    """An interface that takes a message at once."""
    for size in SIZES:
        nonce, text, additional = data(12, 70), data(size, 71), data(13, 72)
        out = made.encrypt(nonce, text, additional)
        assert made.decrypt(nonce, out, additional) == text
        for altered in (out[:-1] + bytes([out[-1] ^ 1]), bytes([out[0] ^ 0x80]) + out[1:]):
            try:
                made.decrypt(nonce, altered, additional)
            except InvalidTag:
                continue
            raise AssertionError(f"{name} took an altered message of {size} bytes")
        tell(name, text, out)


stream_modes()
xts()
gcm()
for bits in 128, 192, 256:
    whole(f"AES-{bits}-GCM", AESGCM(data(bits // 8, 3)))
whole("ChaCha20-Poly1305", ChaCha20Poly1305(data(32, 3)))

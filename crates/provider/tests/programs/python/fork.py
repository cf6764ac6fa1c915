"""Encrypts 1000 bytes, forks, and encrypts 10 in the child; both end in order.

Prints the number of the child's process.
"""

import os

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes


def encrypt(size):
    made = Cipher(algorithms.AES(bytes(24)), modes.CTR(bytes(16))).encryptor()
    return made.update(bytes(size)) + made.finalize()


encrypt(1000)
child = os.fork()
if child == 0:
    encrypt(10)
else:
    _, status = os.waitpid(child, 0)
    assert status == 0
    print(child)

<?php
// Each cipher of AES and ChaCha20-Poly1305 that PHP knows, with lengths of data, IVs and tags that are right and
// wrong, padded and not: a line for each, with what OpenSSL said where it refused.

$key = hash('sha512', 'key', true);

function why(): string {
    $said = openssl_error_string() ?: '';
    while (openssl_error_string());
    return $said;
}

function told(string $method, int $length, int $iv_length, int $options, int $tag_length): string {
    global $key;
    $data = substr(str_repeat("abcdefghij\0", intdiv($length, 11) + 1), 0, $length);
    $iv = substr(str_repeat($key, 2), 0, $iv_length);
    $one = substr($key, 0, openssl_cipher_key_length($method));
    if (!preg_match('/gcm|ccm|ocb|poly/i', $method)) {
        $sealed = openssl_encrypt($data, $method, $one, $options, $iv);
        if ($sealed === false) return why();
        $opened = openssl_decrypt($sealed, $method, $one, $options, $iv);
        return md5($sealed) . ($opened === $data ? ' opened' : ' LOST');
    }
    $sealed = openssl_encrypt($data, $method, $one, $options, $iv, $tag, 'header', $tag_length);
    if ($sealed === false) return why();
    $opened = openssl_decrypt($sealed, $method, $one, $options, $iv, $tag, 'header');
    $wrong = $tag;
    $wrong[0] = chr(ord($tag[0]) ^ 1);
    $forged = openssl_decrypt($sealed, $method, $one, $options, $iv, $wrong, 'header');
    return md5($sealed . $tag) . ($opened === $data ? ' opened' : ' LOST')
        . ($forged === false ? ' refused ' . why() : ' FORGED');
}

error_reporting(0);
foreach (array_unique(array_map('strtolower', openssl_get_cipher_methods(true))) as $method) {
    $known = openssl_cipher_iv_length($method);
    if ($known === false || !preg_match('/^(id-)?(aes|chacha)/', $method) || preg_match('/hmac|wrap|siv/', $method)) continue;
    foreach ([0, 1, 15, 16, 17, 32, 1000, 70000] as $length)
        foreach (array_unique([$known, 1, 7, 12, 16, 24, 60]) as $iv_length)
            foreach ([OPENSSL_RAW_DATA, OPENSSL_RAW_DATA | OPENSSL_ZERO_PADDING] as $options)
                foreach (preg_match('/gcm|poly/', $method) ? [16, 12, 4] : [16] as $tag_length)
                    echo "$method $length $iv_length $options $tag_length ",
                        told($method, $length, $iv_length, $options, $tag_length), "\n";
}

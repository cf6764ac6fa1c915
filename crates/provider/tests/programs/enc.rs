//! `openssl enc`, byte for byte as with the default provider, and back.

use std::fs;

use crate::place::{From, Place, succeeded};

const SIZES: [usize; 14] = [
    0, 1, 15, 16, 17, 31, 32, 33, 255, 256, 1000, 4095, 4097, 5000,
];

#[test]
fn every_cipher_gives_the_same_bytes_as_the_default_provider() {
    let place = Place::new();
    let iv = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
    for (mode, bits) in ["ecb", "cbc", "ctr"]
        .into_iter()
        .flat_map(|mode| [128, 192, 256].map(|bits| (mode, bits)))
    {
        let cipher = format!("-aes-{bits}-{mode}");
        let key: String = (0..bits / 8)
            .map(|i| format!("{:02x}", i * 7 + 3))
            .collect();
        let enc = |from, direction, file: &str| {
            let mut command = place.command("openssl", from);
            command.args(["enc", &cipher, direction, "-K", &key, "-in", file]);
            if mode != "ecb" {
                command.args(["-iv", iv]);
            }
            succeeded(&mut command).stdout
        };
        let mut bytes = 0;
        for size in SIZES {
            let data: Vec<u8> = (0..size).map(|i| (i * 131 + i / 251) as u8).collect();
            fs::write(place.path().join("data"), &data).unwrap();
            let ours = enc(From::Cipherlane, "-e", "data");
            assert_eq!(ours, enc(From::Default, "-e", "data"), "{cipher} {size}");
            fs::write(place.path().join("encrypted"), &ours).unwrap();
            assert_eq!(
                enc(From::Cipherlane, "-d", "encrypted"),
                data,
                "{cipher} {size}"
            );
            bytes += data.len() + ours.len();
        }
        let used = place.used();
        let name = cipher[1..].to_uppercase();
        assert_eq!(used.get(&name), Some(&(bytes as u64)), "{cipher} {used:?}");
    }
}

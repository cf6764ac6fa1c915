//! AES-GCM as OpenSSH calls it (its cipher.c): the whole IV is given with a length of -1, and
//! each packet asks for the next one.

use crate::libcrypto::{Context, DEFAULT, Lib, OURS, Refused};

const CIPHERS: [&str; 2] = ["AES-128-GCM", "AES-256-GCM"];
const IV: [u8; 12] = [
    0xa1, 0xa2, 0xa3, 0xa4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
];

fn begun(lib: &Lib, name: &str, encrypt: bool) -> Context {
    let cipher = lib.cipher(name);
    let mut context = cipher.context();
    let key: Vec<u8> = (0..cipher.key_len() as u8).collect();
    context.init(encrypt, None, Some(&IV)).unwrap();
    context.restore_iv(&IV).unwrap();
    context.init(encrypt, Some(&key), None).unwrap();
    context
}

/// A packet: its length in clear, its data, and its tag.
fn seal(context: &mut Context, data: &[u8]) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let last = context.generate_iv(1).unwrap();
    context.once_aside(Some(&[0, 0, 0, 9])).unwrap();
    let sealed = context.once(Some(data)).unwrap();
    context.once_aside(None).unwrap();
    (last, sealed, context.tag(16).unwrap())
}

fn open(context: &mut Context, sealed: &[u8], tag: &[u8]) -> Result<Vec<u8>, Refused> {
    context.generate_iv(1)?;
    context.set_tag(tag)?;
    context.once_aside(Some(&[0, 0, 0, 9]))?;
    let data = context.once(Some(sealed))?;
    context.once_aside(None).map(|()| data)
}

#[test]
fn packets_are_as_with_the_default_provider() {
    for name in CIPHERS {
        let mut sides = [&*OURS, &*DEFAULT].map(|lib| {
            let sealing = begun(lib, name, true);
            (sealing, begun(lib, name, false))
        });
        for len in [16, 32, 48, 1024, 32768] {
            let data: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
            let [ours, default] = sides.each_mut().map(|(sealing, _)| seal(sealing, &data));
            assert_eq!(ours, default, "{name} {len}");
            for (_, opening) in &mut sides {
                let opened = open(opening, &ours.1, &ours.2);
                assert_eq!(opened.as_deref(), Ok(&data[..]), "{name} {len}");
            }
        }
        // It asks for all of the IV, for the context of another process.
        let [ours, default] = sides.each_mut().map(|(sealing, _)| sealing.generate_iv(12));
        assert_eq!(ours, default);
        let [ours, default] = sides.each_mut().map(|(_, opening)| opening.generate_iv(-1));
        assert_eq!(ours, default);
    }
}

/// The context is neither read nor written beyond its end.
#[test]
fn a_length_of_minus_one_where_it_means_nothing_is_refused() {
    for lib in [&*OURS, &*DEFAULT] {
        assert!(
            begun(lib, CIPHERS[0], true)
                .announce_without_length()
                .is_err()
        );
        let mut chacha = lib.cipher("ChaCha20-Poly1305").context();
        assert!(chacha.restore_iv(&IV).is_err());
        assert!(chacha.announce_without_length().is_err());
    }
}

/// A counter of 8 bytes does not fit into an IV of 4, however that came about. The default
/// provider counts in the memory before the IV.
#[test]
fn an_iv_made_shorter_than_its_counter_is_refused() {
    let mut context = begun(&OURS, CIPHERS[0], true);
    context.set_iv_length(4).unwrap();
    assert!(context.generate_iv(4).is_err());
    context.restore_iv(&IV[..4]).unwrap();
    assert!(context.generate_iv(4).is_err());
    let header = [1, 2, 3, 4, 5, 6, 7, 8, 0x17, 3, 3, 0, 40];
    context.announce(&header).unwrap();
    assert!(context.update_in_place(&[0; 48]).is_err());
}

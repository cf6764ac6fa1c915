//! After a session is closed its key is nowhere in the memory of the process.
//!
//! Alone in its file: other tests' keys and buffers would be in the same memory.

use std::fs;
use std::os::unix::fs::FileExt;

use cipherlane::{Algorithm, Batch, Config, Direction, Kind, OwnedRequest, Payload, Request};

/// A key as it is never stored: the bytes that are looked for must not be in memory
/// because of the looking.
struct Masked(Vec<u8>);

impl Masked {
    const MASK: u8 = 0xc3;

    fn new(bytes: &mut [u8]) -> Masked {
        let masked = Masked(bytes.iter().map(|b| b ^ Self::MASK).collect());
        bytes.fill(0);
        masked
    }

    /// Where the bytes stand in `memory`.
    fn find(&self, memory: &[u8]) -> Vec<usize> {
        let here = |at: &[u8]| at.iter().zip(&self.0).all(|(a, b)| a ^ Self::MASK == *b);
        let places = memory.windows(self.0.len()).enumerate();
        places
            .filter(|(_, at)| here(at))
            .map(|(place, _)| place)
            .collect()
    }
}

/// How often the bytes stand in readable and writable memory of the process.
fn scan(wanted: &Masked) -> usize {
    let regions = |maps: &str| -> Vec<(u64, u64)> {
        let data = maps
            .lines()
            .filter(|l| l.contains(" rw") && !l.ends_with("[vvar]"));
        let range = |line: &str| {
            let (from, to) = line.split(' ').next()?.split_once('-')?;
            Some((
                u64::from_str_radix(from, 16).ok()?,
                u64::from_str_radix(to, 16).ok()?,
            ))
        };
        data.filter_map(range).collect()
    };
    let maps = || fs::read_to_string("/proc/self/maps").unwrap();
    let largest = regions(&maps())
        .iter()
        .map(|(from, to)| to - from)
        .max()
        .unwrap();
    let mut buffer = vec![0; 2 * largest as usize];
    let own = buffer.as_ptr_range();
    let memory = fs::File::open("/proc/self/mem").unwrap();
    let mut found = 0;
    for (from, to) in regions(&maps()) {
        let copy = &mut buffer[..(to - from).min(2 * largest) as usize];
        if memory.read_exact_at(copy, from).is_err() {
            continue;
        }
        // The copy would find itself.
        let places = wanted
            .find(copy)
            .into_iter()
            .map(|place| from + place as u64);
        found += places
            .filter(|&at| !own.contains(&(at as *const u8)))
            .count();
        copy.fill(0);
    }
    found
}

fn random(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fs::File::open("/dev/urandom")
        .unwrap()
        .read_exact_at(&mut bytes, 0)
        .unwrap();
    bytes
}

/// What the expansion of the key 00 01 .. 0f ends with (FIPS 197 appendix C.1), masked.
const SEQUENCE_LAST_ROUND_KEY: [u8; 16] = [
    0x13 ^ 0xc3,
    0x11 ^ 0xc3,
    0x1d ^ 0xc3,
    0x7f ^ 0xc3,
    0xe3 ^ 0xc3,
    0x94 ^ 0xc3,
    0x4a ^ 0xc3,
    0x17 ^ 0xc3,
    0xf3 ^ 0xc3,
    0x07 ^ 0xc3,
    0xa7 ^ 0xc3,
    0x8b ^ 0xc3,
    0x4d ^ 0xc3,
    0x2b ^ 0xc3,
    0x30 ^ 0xc3,
    0xc5 ^ 0xc3,
];

/// The 16 bytes of a key that are looked for: where the AES key stands, if there is one.
fn secret(algorithm: &Algorithm, key: &mut [u8]) -> Masked {
    let from = match algorithm.name {
        name if !name.starts_with("authenc") || name.contains("cipher_null") => 0,
        name if name.contains("sha512") => 64,
        _ => 32,
    };
    let secret = Masked::new(&mut key[from..from + 16]);
    key.fill(0);
    secret
}

#[test]
fn no_driver_leaves_a_key_behind() {
    let mut config = Config::default();
    let device = toml::from_str("devices = ['pcie-modern']\npool_kib = 256").unwrap();
    config.drivers.insert("dma".to_owned(), device);
    let framework = cipherlane_drivers::framework(config).unwrap();
    let names: Vec<String> = framework
        .driver_names()
        .into_iter()
        .map(str::to_owned)
        .collect();
    let (mut sessions, mut found_open) = (0, 0);
    for driver in &names {
        for algorithm in Algorithm::all() {
            let mut key = random(algorithm.key_lengths()[0]);
            if algorithm.name == "cbc(aes)" {
                key.iter_mut()
                    .enumerate()
                    .for_each(|(i, byte)| *byte = i as u8);
            }
            let builder = framework
                .session(algorithm.name, &key)
                .unwrap()
                .driver(driver);
            let Ok(session) = builder.open() else {
                continue;
            };
            let secret = match algorithm.name {
                // This key is all over memory; what is looked for is its expansion.
                "cbc(aes)" => Masked(SEQUENCE_LAST_ROUND_KEY.to_vec()),
                _ => secret(algorithm, &mut key),
            };
            let aad = vec![1; algorithm.aad.fit(0)];
            let iv = vec![3; algorithm.iv_len];
            let mut data = vec![7; 100_000 / 16 * 16];
            let mut tag = vec![0; session.tag_len()];
            let request = match algorithm.kind {
                Kind::Mac => Request::mac(&data),
                _ => Request::in_place(&mut data),
            };
            let request = request.iv(&iv).aad(&aad).tag(&mut tag);
            session.process(Direction::Encrypt, &mut [request]).unwrap();
            let mut batch = Batch::new(Direction::Encrypt);
            for _ in 0..8 {
                let payload = match algorithm.kind {
                    Kind::Mac => Payload::Mac(vec![5; 1600]),
                    _ => Payload::InPlace(vec![5; 1600]),
                };
                let tag = vec![0; session.tag_len()];
                batch.push(
                    OwnedRequest::new(payload)
                        .iv(iv.clone())
                        .aad(aad.clone())
                        .tag(tag),
                );
            }
            let ticket = session.submit(&mut batch).unwrap();
            let open = scan(&secret);
            session.close();
            found_open += usize::from(open > 0);
            let left = scan(&secret);
            assert_eq!(left, 0, "{driver} {}: key left in memory", algorithm.name);
            // A ticket that is still kept keeps no key.
            drop(ticket.wait());
            sessions += 1;
        }
    }
    assert!(sessions >= Algorithm::all().len());
    // MAC keys are kept as hash states only, and a driver may keep a key in another form.
    assert!(
        found_open >= 4,
        "open keys were found in {found_open} of {sessions} sessions only"
    );
}

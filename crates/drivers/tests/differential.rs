//! Random batches through every driver present, judged by the naive reference.

use std::sync::OnceLock;

use cipherlane::{Algorithm, Config, Direction, Framework, Kind, Request, Sample, Status};
use cipherlane_drivers::dma;
use proptest::prelude::*;
use proptest::sample::Index;

/// With a dedicated core, so that the `cores` driver is there, and models of devices: one that
/// takes everything, one with rules for memory.
fn framework() -> &'static Framework {
    static FRAMEWORK: OnceLock<Framework> = OnceLock::new();
    FRAMEWORK.get_or_init(|| {
        let mut config = Config::default();
        let table = config.drivers.entry("cores".to_owned()).or_default();
        table.insert("cores".to_owned(), "0".into());
        for device in ["pcie-modern", "am335x"] {
            dma::Settings::add(&mut config, device);
        }
        cipherlane_drivers::framework(config).unwrap()
    })
}

/// One request as drawn: lengths and places, the bytes following from a seed.
#[derive(Clone, Debug)]
struct Draw {
    len: usize,
    aad_len: usize,
    offset: usize,
    in_place: bool,
    cuts: Vec<Index>,
    spoil: bool,
    seed: u8,
}

fn draw() -> impl Strategy<Value = Draw> {
    let len = prop_oneof![8 => 0..300usize, 3 => 300..2000usize, 1 => 2000..70_000usize];
    let cuts = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(any::<Index>(), 1..4)];
    (
        len,
        0..40usize,
        0..17usize,
        any::<bool>(),
        cuts,
        any::<bool>(),
        any::<u8>(),
    )
        .prop_map(|(len, aad_len, offset, in_place, cuts, spoil, seed)| Draw {
            len,
            aad_len,
            offset,
            in_place,
            cuts,
            spoil,
            seed,
        })
}

fn bytes(seed: u8, salt: u8, len: usize) -> Vec<u8> {
    let mut state = u32::from(seed) << 8 | u32::from(salt) | 1;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// A request's memory, and what should be in it afterwards.
struct Case {
    draw: Draw,
    iv: Vec<u8>,
    aad: Vec<u8>,
    memory: Vec<u8>,
    output: Vec<u8>,
    tag: Vec<u8>,
    want: Vec<u8>,
    want_tag: Vec<u8>,
    want_status: Status,
}

impl Case {
    fn new(algorithm: &Algorithm, key: &[u8], direction: Direction, mut draw: Draw) -> Case {
        draw.len = draw.len.max(algorithm.least) / algorithm.block * algorithm.block;
        draw.aad_len = algorithm.aad.fit(draw.aad_len);
        let iv = bytes(draw.seed, 1, algorithm.iv_len);
        let aad = bytes(draw.seed, 2, draw.aad_len);
        let plain = bytes(draw.seed, 3, draw.len);
        let encrypt = Sample {
            direction: Direction::Encrypt,
            key,
            iv: &iv,
            aad: &aad,
            data: &plain,
        };
        let (cipher, true_tag) = (algorithm.reference)(encrypt);
        let encrypting = direction == Direction::Encrypt;
        let (input, mut want) = match (algorithm.kind, encrypting) {
            (Kind::Mac, _) => (plain.clone(), plain),
            (_, true) => (plain, cipher),
            (_, false) => (cipher, plain),
        };
        let (mut tag, mut want_status) = (true_tag.clone(), Status::Done);
        let mut want_tag = true_tag;
        if encrypting {
            tag.fill(0);
        } else if draw.spoil && !tag.is_empty() {
            let at = usize::from(draw.seed) % tag.len();
            tag[at] ^= 1 << (draw.seed % 8);
            want_tag.clone_from(&tag);
            want_status = Status::BadTag;
            if algorithm.kind != Kind::Mac {
                want.fill(0);
            }
        }
        let mut memory = vec![0xee; draw.offset];
        memory.extend_from_slice(&input);
        let output = vec![0xdd; draw.len];
        Case {
            draw,
            iv,
            aad,
            memory,
            output,
            tag,
            want,
            want_tag,
            want_status,
        }
    }

    /// Cuts at which the payload falls into segments.
    fn cuts(&self) -> Vec<usize> {
        let mut cuts: Vec<usize> = self
            .draw
            .cuts
            .iter()
            .map(|cut| cut.index(self.draw.len + 1))
            .collect();
        cuts.sort_unstable();
        cuts
    }
}

fn cut<'a>(mut data: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut segments = Vec::new();
    let mut from = 0;
    for &at in cuts {
        let (head, tail) = data.split_at(at - from);
        segments.push(head);
        (data, from) = (tail, at);
    }
    segments.push(data);
    segments
}

fn cut_mut<'a>(mut data: &'a mut [u8], cuts: &[usize]) -> Vec<&'a mut [u8]> {
    let mut segments = Vec::new();
    let mut from = 0;
    for &at in cuts {
        let (head, tail) = data.split_at_mut(at - from);
        segments.push(head);
        (data, from) = (tail, at);
    }
    segments.push(data);
    segments
}

/// The payload's segments.
enum Regions<'a> {
    InPlace(Vec<&'a mut [u8]>),
    Apart(Vec<&'a [u8]>, Vec<&'a mut [u8]>),
    Mac(Vec<&'a [u8]>),
}

impl Regions<'_> {
    fn request(&mut self) -> Request<'_> {
        match self {
            Regions::InPlace(list) => match list.as_mut_slice() {
                [one] => Request::in_place(one),
                many => Request::scatter_in_place(many),
            },
            Regions::Apart(from, to) => match (from.as_slice(), to.as_mut_slice()) {
                ([one], [other]) => Request::new(one, other),
                (from, to) => Request::scatter(from, to),
            },
            Regions::Mac(list) => match list.as_slice() {
                [one] => Request::mac(one),
                many => Request::mac_scatter(many),
            },
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn every_driver_agrees_with_the_reference(
        which in any::<Index>(),
        key_len in any::<Index>(),
        decrypt in any::<bool>(),
        draws in prop::collection::vec(draw(), 1..20),
    ) {
        let algorithm = *which.get(Algorithm::all());
        let key_lengths = algorithm.key_lengths();
        let key = bytes(99, 0, *key_len.get(&key_lengths));
        let direction = if decrypt { Direction::Decrypt } else { Direction::Encrypt };
        for driver in framework().driver_names() {
            let builder = framework().session(algorithm.name, &key).unwrap().driver(driver);
            let Ok(session) = builder.open() else { continue };
            let mut cases: Vec<Case> = draws
                .iter()
                .map(|draw| Case::new(algorithm, &key, direction, draw.clone()))
                .collect();
            let mut regions: Vec<_> = cases
                .iter_mut()
                .map(|case| {
                    let cuts = case.cuts();
                    // The output falls apart elsewhere than the input.
                    let halves: Vec<usize> = cuts.iter().map(|at| at / 2).collect();
                    let data = &mut case.memory[case.draw.offset..];
                    let regions = match (algorithm.kind, case.draw.in_place) {
                        (Kind::Mac, _) => Regions::Mac(cut(data, &cuts)),
                        (_, true) => Regions::InPlace(cut_mut(data, &cuts)),
                        (_, false) => {
                            Regions::Apart(cut(data, &cuts), cut_mut(&mut case.output, &halves))
                        }
                    };
                    (regions, &mut case.tag, &case.iv, &case.aad)
                })
                .collect();
            let mut requests: Vec<Request<'_>> = regions
                .iter_mut()
                .map(|(regions, tag, iv, aad)| regions.request().iv(iv).aad(aad).tag(tag))
                .collect();
            let _ = session.process(direction, &mut requests);
            let statuses: Vec<Status> = requests.iter().map(Request::status).collect();
            drop(requests);
            drop(regions);
            for (i, (case, status)) in cases.iter().zip(statuses).enumerate() {
                let found = match case.draw.in_place || algorithm.kind == Kind::Mac {
                    true => &case.memory[case.draw.offset..],
                    false => &case.output,
                };
                prop_assert_eq!(status, case.want_status, "{} {} {}", driver, algorithm.name, i);
                prop_assert!(found == case.want, "{} {} {}: payload", driver, algorithm.name, i);
                prop_assert_eq!(&case.tag, &case.want_tag, "{} {} {}", driver, algorithm.name, i);
            }
        }
    }
}

//! One request with its memory, what should come of it, and how it is judged.

use crate::Direction;
use crate::algorithm::{Algorithm, Kind, Sample};
use crate::request::{Request, Status};
use crate::selftest::Random;

/// Bytes behind data and output that nobody may write.
const GUARD: usize = 24;

/// Where a request's memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    InPlace,
    Apart,
}

/// A request before and after.
pub(super) struct Case {
    kind: Kind,
    direction: Direction,
    place: Place,
    len: usize,
    offset: usize,
    /// Where the payload falls into segments; empty: it is flat.
    cuts: Vec<usize>,
    pub(super) iv: Vec<u8>,
    pub(super) aad: Vec<u8>,
    /// Input between bytes that nobody may write.
    memory: Vec<u8>,
    /// The same for output apart.
    beside: Vec<u8>,
    tag: Vec<u8>,
    given: (Vec<u8>, Vec<u8>, Vec<u8>),
    want: Vec<u8>,
    want_tag: Vec<u8>,
    want_status: Status,
}

/// What is drawn of a case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draw {
    pub(super) direction: Direction,
    pub(super) len: usize,
    pub(super) scattered: bool,
}

impl Case {
    pub(super) fn new(algorithm: &Algorithm, key: &[u8], draw: Draw, random: &mut Random) -> Self {
        let Draw { direction, len, .. } = draw;
        let iv = algorithm.fit_iv(random.bytes(algorithm.iv_len));
        let aad_len = algorithm.aad.fit(random.next() as usize % 40);
        let aad = random.bytes(aad_len);
        let plain = random.bytes(len);
        let (cipher, right_tag) = (algorithm.reference)(Sample {
            direction: Direction::Encrypt,
            key,
            iv: &iv,
            aad: &aad,
            data: &plain,
        });
        let encrypting = direction == Direction::Encrypt;
        let (input, mut want) = match (algorithm.kind, encrypting) {
            (Kind::Mac, _) => (plain.clone(), plain),
            (_, true) => (plain, cipher),
            (_, false) => (cipher, plain),
        };
        let (mut tag, mut want_status) = (right_tag.clone(), Status::Done);
        let mut want_tag = right_tag;
        if encrypting {
            tag.fill(0);
        } else if !tag.is_empty() && random.next().is_multiple_of(3) {
            let at = random.next() as usize % tag.len();
            tag[at] ^= 1 << (random.next() % 8);
            want_tag.clone_from(&tag);
            want_status = Status::BadTag;
            if algorithm.kind != Kind::Mac {
                want.fill(0);
            }
        }
        let offset = random.next() as usize % 17;
        let around =
            |data: &[u8], fill: u8| [&vec![fill; offset][..], data, &[fill; GUARD]].concat();
        let memory = around(&input, 0xee);
        let beside = around(&vec![0xdd; len], 0xdd);
        let mut cuts: Vec<usize> = match draw.scattered {
            true => (0..1 + random.next() % 3)
                .map(|_| random.next() as usize % (len + 1))
                .collect(),
            false => Vec::new(),
        };
        cuts.sort_unstable();
        Case {
            kind: algorithm.kind,
            direction,
            place: match random.next().is_multiple_of(2) {
                true => Place::InPlace,
                false => Place::Apart,
            },
            len,
            offset,
            cuts,
            iv,
            aad,
            given: (memory.clone(), beside.clone(), tag.clone()),
            memory,
            beside,
            tag,
            want,
            want_tag,
            want_status,
        }
    }

    /// What a caller would hand over, in memory of its own: input and tag.
    pub(super) fn given(&self) -> (Vec<u8>, Vec<u8>) {
        let input = &self.memory[self.offset..self.offset + self.len];
        (input.to_vec(), self.tag.clone())
    }

    /// Judges what came of it in such memory.
    pub(super) fn judge_owned(
        &self,
        status: Status,
        found: &[u8],
        tag: &[u8],
    ) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{}: {what}", self.name()));
        if status != self.want_status {
            return wrong(&self.wrong_status(status));
        }
        if self.kind != Kind::Mac && found != self.want {
            return wrong(&self.wrong_output(found));
        }
        match tag == self.want_tag {
            true => Ok(()),
            false => wrong("the tag is wrong"),
        }
    }

    /// In words.
    fn name(&self) -> String {
        let way = match self.direction {
            Direction::Encrypt => "encrypting",
            Direction::Decrypt => "decrypting",
        };
        let place = match (self.kind, self.place) {
            (Kind::Mac, _) => "",
            (_, Place::InPlace) => " in place",
            (_, Place::Apart) => " apart",
        };
        let cut = match self.cuts.is_empty() {
            true => String::new(),
            false => format!(", cut at {:?}", self.cuts),
        };
        let tag = match self.want_status {
            Status::BadTag => " with a wrong tag",
            _ => "",
        };
        format!("{way} {} bytes{place}{tag}{cut}", self.len)
    }

    fn wrong_status(&self, status: Status) -> String {
        match (status, self.want_status) {
            (Status::Done, Status::BadTag) => "a wrong tag was accepted".to_owned(),
            (Status::BadTag, Status::Done) => "a right tag was refused".to_owned(),
            (Status::Pending, _) => "it was forgotten: its status is still Pending".to_owned(),
            (status, want) => format!("its status is {status:?}, not {want:?}"),
        }
    }

    fn wrong_output(&self, found: &[u8]) -> String {
        if self.want_status == Status::BadTag {
            return "the output of a forged message was not wiped".to_owned();
        }
        let differs = found.iter().zip(&self.want).position(|(a, b)| a != b);
        format!("byte {} of the output is wrong", differs.unwrap_or(0))
    }

    /// Judges what came of it; `Ok(false)` if it was given up, as is allowed.
    fn judge(&self, status: Status) -> Result<bool, String> {
        let unchanged = (&self.memory, &self.beside, &self.tag)
            == (&self.given.0, &self.given.1, &self.given.2);
        if status == Status::Untouched {
            return match unchanged {
                true => Ok(false),
                false => Err(format!(
                    "{}: it was given up as untouched, but was written to",
                    self.name()
                )),
            };
        }
        let payload = self.offset..self.offset + self.len;
        let (written, kept, before) = match (self.kind, self.place) {
            (Kind::Mac, _) | (_, Place::InPlace) => (&self.memory, &self.beside, &self.given.1),
            (_, Place::Apart) => (&self.beside, &self.memory, &self.given.0),
        };
        self.judge_owned(status, &written[payload.clone()], &self.tag)?;
        if kept != before {
            return Err(format!(
                "{}: memory other than its output was written",
                self.name()
            ));
        }
        let fill = written.last().copied().unwrap_or_default();
        let outside = written[..payload.start]
            .iter()
            .chain(&written[payload.end..]);
        match outside.into_iter().all(|&byte| byte == fill) {
            true => Ok(true),
            false => Err(format!(
                "{}: bytes beside its output were written",
                self.name()
            )),
        }
    }
}

/// Runs a batch and judges it: how many requests were done rather than given up.
pub(super) fn run(
    process: impl FnOnce(&mut [Request<'_>]),
    cases: &mut [Case],
) -> Result<usize, String> {
    let mut regions: Vec<_> = cases
        .iter_mut()
        .map(|case| {
            let payload = case.offset..case.offset + case.len;
            let data = &mut case.memory[payload.clone()];
            // The output falls apart elsewhere than the input.
            let halves: Vec<usize> = case.cuts.iter().map(|at| at / 2).collect();
            let regions = match (case.kind, case.place) {
                (Kind::Mac, _) => Regions::Mac(cut(data, &case.cuts)),
                (_, Place::InPlace) => Regions::InPlace(cut_mut(data, &case.cuts)),
                (_, Place::Apart) => Regions::Apart(
                    cut(data, &case.cuts),
                    cut_mut(&mut case.beside[payload], &halves),
                ),
            };
            (regions, &mut case.tag, &case.iv, &case.aad)
        })
        .collect();
    let mut requests: Vec<Request<'_>> = regions
        .iter_mut()
        .map(|(regions, tag, iv, aad)| regions.request().iv(iv).aad(aad).tag(tag))
        .collect();
    let before: Vec<_> = requests.iter().map(addresses).collect();
    process(&mut requests);
    if !requests.iter().map(addresses).eq(before) {
        return Err("the driver put the requests of a batch in another order".to_owned());
    }
    let statuses: Vec<Status> = requests.iter().map(Request::status).collect();
    drop(requests);
    drop(regions);
    let mut done = 0;
    let all = cases.len();
    for (place, (case, status)) in cases.iter().zip(statuses).enumerate() {
        let judged = case.judge(status);
        done += usize::from(
            judged.map_err(|why| format!("request {} of a batch of {all}: {why}", place + 1))?,
        );
    }
    Ok(done)
}

/// Where the input of a request lies.
fn addresses(request: &Request<'_>) -> Vec<(*const u8, usize)> {
    request.input_regions().collect()
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

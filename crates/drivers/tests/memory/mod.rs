//! Looking for a secret in the memory of this process.

use std::fs;
use std::os::unix::fs::FileExt;

/// Bytes as they are never stored: the bytes that are looked for must not be in memory
/// because of the looking.
pub(crate) struct Masked(pub(crate) Vec<u8>);

impl Masked {
    const MASK: u8 = 0xc3;

    /// Takes the bytes, of which zeros are left.
    pub(crate) fn new(bytes: &mut [u8]) -> Masked {
        let masked = Masked(bytes.iter().map(|b| b ^ Self::MASK).collect());
        bytes.fill(0);
        masked
    }

    /// Writes the bytes as they are.
    #[allow(dead_code, reason = "not every test that looks for a secret writes it")]
    pub(crate) fn write(&self, place: &mut [u8]) {
        let bytes = self.0.iter().map(|byte| byte ^ Self::MASK);
        place
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = from);
    }

    /// Where the bytes stand in `memory`.
    fn find(&self, memory: &[u8]) -> Vec<usize> {
        let here = |at: &[u8]| at.iter().zip(&self.0).all(|(a, b)| a ^ Self::MASK == *b);
        let first = self.0[0] ^ Self::MASK;
        let mut places = Vec::new();
        let mut from = 0;
        while let Some(next) = memory[from..].iter().position(|&byte| byte == first) {
            let at = from + next;
            let whole = memory[at..].get(..self.0.len());
            places.extend(whole.filter(|at| here(at)).map(|_| at));
            from = at + 1;
        }
        places
    }
}

/// How often the bytes stand in readable and writable memory of the process.
pub(crate) fn scan(wanted: &Masked) -> usize {
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

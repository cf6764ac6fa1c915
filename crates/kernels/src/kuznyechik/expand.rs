//! The expansion of a key.

use super::key::KuznyechikKey;
use crate::choose::choose;
use crate::portable;
#[cfg(target_arch = "x86_64")]
use crate::x86_64;

impl KuznyechikKey {
    /// Expands a key of 32 bytes; `None` for any other length.
    pub fn new(key: &[u8]) -> Option<KuznyechikKey> {
        let key = key.try_into().ok()?;
        let mut new = KuznyechikKey {
            rounds: [[0; 16]; 10],
            #[cfg(target_arch = "x86_64")]
            tower: [[0; 16]; 10],
            #[cfg(target_arch = "x86_64")]
            split: [[0; 16]; 10],
        };
        new.expand(key);
        Some(new)
    }

    fn expand(&mut self, key: &[u8; 32]) {
        choose! {
            token: HaveAvx2 => {
                let forms = [&mut self.rounds, &mut self.tower, &mut self.split];
                x86_64::kuznyechik::avx2::expand(token, key, forms);
            },
            _ => portable::kuznyechik::expand(key, &mut self.rounds),
        }
    }
}

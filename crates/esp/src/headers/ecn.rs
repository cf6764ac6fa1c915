//! Explicit congestion notification through a tunnel (RFC 6040).

use super::Problem;

/// The ECN field of an IP header (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not understand congestion marks.
    NotEct = 0,
    /// It does, codepoint ECT(1).
    Ect1 = 1,
    /// It does, codepoint ECT(0).
    Ect0 = 2,
    /// Congestion was experienced.
    Ce = 3,
}

impl Ecn {
    /// Of the lower two bits of a TOS or traffic class byte.
    pub fn of(traffic_class: u8) -> Self {
        match traffic_class & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// What the inner header of a packet gets that came with `outer` (RFC 6040 section 4.2,
    /// figure 4).
    ///
    /// # Errors
    /// Congestion on a packet whose sender knows no marks: it must be dropped.
    pub fn decapsulate(inner: Ecn, outer: Ecn) -> Result<Ecn, Problem> {
        match (inner, outer) {
            (Ecn::NotEct, Ecn::Ce) => Err(Problem::Congested),
            (Ecn::NotEct, _) => Ok(Ecn::NotEct),
            (Ecn::Ce, _) | (_, Ecn::Ce) => Ok(Ecn::Ce),
            (Ecn::Ect0, Ecn::Ect1) => Ok(Ecn::Ect1),
            (inner, _) => Ok(inner),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_4_of_rfc_6040() {
        use Ecn::{Ce, Ect0, Ect1, NotEct};
        let table = [
            (NotEct, [Some(NotEct), Some(NotEct), Some(NotEct), None]),
            (Ect0, [Some(Ect0), Some(Ect0), Some(Ect1), Some(Ce)]),
            (Ect1, [Some(Ect1), Some(Ect1), Some(Ect1), Some(Ce)]),
            (Ce, [Some(Ce), Some(Ce), Some(Ce), Some(Ce)]),
        ];
        for (inner, row) in table {
            for (outer, expected) in [NotEct, Ect0, Ect1, Ce].into_iter().zip(row) {
                let expected = expected.ok_or(Problem::Congested);
                assert_eq!(
                    Ecn::decapsulate(inner, outer),
                    expected,
                    "{inner:?} in {outer:?}"
                );
            }
        }
        for bits in 0..=255 {
            assert_eq!(Ecn::of(bits) as u8, bits & 3);
        }
    }
}

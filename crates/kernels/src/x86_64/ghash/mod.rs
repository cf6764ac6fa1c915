//! GHASH by carry-less multiplication (NIST SP 800-38D section 6.4).
//!
//! GHASH puts the coefficient of x^0 in the first bit of a block. With the bytes of
//! a block reversed the bits stand in falling order, and a product of two such
//! values comes out one place too low: it is enough to keep every power of H
//! multiplied by x once. The products are then reduced modulo
//! x^128 + x^127 + x^126 + x^121 + 1 by Montgomery's method, as for POLYVAL
//! (RFC 8452 appendix A).
//!
//! A group of n blocks is summed with falling powers, x1 H^n + ... + xn H, and
//! reduced once. In the table the powers fall as addresses rise and zeros follow
//! H, so a group that ends anywhere inside a vector finds its powers at one
//! address, and lanes behind the group are multiplied by zero.

mod expand;
mod powers;
mod sum;

pub(super) use self::expand::{first_powers, further_powers, has_shifted, product};
pub(super) use self::powers::Powers;
pub(super) use self::sum::{Product, Sum};

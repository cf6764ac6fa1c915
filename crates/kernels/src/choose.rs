//! The choice of an implementation by the instructions that this processor has.

/// The first arm whose token ([`crate::cpu`]) this processor gives, else the last arm, which runs
/// on every processor. The arms before it are for x86-64.
macro_rules! choose {
    (_ => $portable:expr $(,)?) => {
        $portable
    };
    ($token:ident: $instructions:ident => $run:expr, $($others:tt)+) => {{
        #[cfg(target_arch = "x86_64")]
        {
            if let Some($token) = $crate::cpu::$instructions::new() {
                $run
            } else {
                $crate::choose::choose!($($others)+)
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            $crate::choose::choose!($($others)+)
        }
    }};
}
pub(crate) use choose;

/// An AES mode, by its entry in the best of the x86-64 tiers, else by its portable function.
macro_rules! by_tier {
    ($entry:ident($($arg:expr),*), _ => $portable:expr) => {
        $crate::choose::choose! {
            token: HaveVaes512 => $crate::x86_64::vaes512::$entry(token, $($arg),*),
            token: HaveVaes => $crate::x86_64::vaes::$entry(token, $($arg),*),
            token: HaveClmul => $crate::x86_64::aes_ni::$entry(token, $($arg),*),
            token: HaveAesNi => $crate::x86_64::aes_bare::$entry(token, $($arg),*),
            _ => $crate::wipe::on_portable(|| $portable),
        }
    };
}
pub(crate) use by_tier;

/// Returns from the function around with one message done that has no other to be packed with,
/// where this processor has one of the x86-64 tiers.
macro_rules! alone {
    ($entry:ident($($arg:expr),*)) => {
        $crate::choose::choose! {
            token: HaveVaes512 => return $crate::x86_64::vaes512::$entry(token, $($arg),*),
            token: HaveVaes => return $crate::x86_64::vaes::$entry(token, $($arg),*),
            token: HaveClmul => return $crate::x86_64::aes_ni::$entry(token, $($arg),*),
            token: HaveAesNi => return $crate::x86_64::aes_bare::$entry(token, $($arg),*),
            _ => (),
        }
    };
}
pub(crate) use alone;

/// Returns from the function around with the next part of a message done, where this
/// processor has an entry for that among the x86-64 ones. With a length, only where it is one
/// of the short parts that the entry takes.
macro_rules! part {
    ($len:expr, $entry:ident($($arg:expr),*)) => {
        #[cfg(target_arch = "x86_64")]
        if $crate::x86_64::part::takes($len) {
            $crate::choose::part!($entry($($arg),*));
        }
    };
    ($entry:ident($($arg:expr),*)) => {
        $crate::choose::choose! {
            token: HaveVaes => return $crate::x86_64::part::vaes::$entry(token, $($arg),*),
            token: HaveClmul => return $crate::x86_64::part::aes_ni::$entry(token, $($arg),*),
            token: HaveAesNi => return $crate::x86_64::part::aes_bare::$entry(token, $($arg),*),
            _ => (),
        }
    };
}
pub(crate) use part;

/// Returns from the function around with a part of a message done that is a few blocks, where this
/// processor has an entry for that.
macro_rules! block {
    ($len:expr, $entry:ident($($arg:expr),*)) => {
        #[cfg(target_arch = "x86_64")]
        if $crate::x86_64::block::takes($len) {
            $crate::choose::choose! {
                token: HaveVaes => return $crate::x86_64::block::vaes::$entry(token, $($arg),*),
                token: HaveClmul => return $crate::x86_64::block::aes_ni::$entry(token, $($arg),*),
                token: HaveAesNi => return $crate::x86_64::block::aes_bare::$entry(token, $($arg),*),
                _ => (),
            }
        }
    };
}
pub(crate) use block;
